// A file is written under another name and then renamed, so that nobody reads half of it.
#include "tests/emulated_cuda/nccl_processes.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace emulated_cuda {

namespace {

std::string joined(int rank) { return fmt::format("joined-{}", rank); }
std::string left(int rank) { return fmt::format("left-{}", rank); }

}  // namespace

bool lives(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] != 'Z';
}

std::uint64_t Post::new_number() {
  static std::uint64_t number = 0;
  return static_cast<std::uint64_t>(::getpid()) << 32 | ++number;
}

Post::Post(std::uint64_t number)
    : folder_{std::filesystem::temp_directory_path() /
              fmt::format("rehearse-emulated-nccl-{:x}", number)} {
  std::filesystem::create_directories(folder_);
}

void Post::join(int rank, int device) const {
  const std::string text = fmt::format("{} {}", ::getpid(), device);
  put(joined(rank), std::as_bytes(std::span{text}));
}

std::optional<std::vector<Post::Member>> Post::members(int ranks) const {
  std::vector<Member> all;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream file(folder_ / joined(rank));
    Member member;
    if (!(file >> member.process >> member.device)) return std::nullopt;
    all.push_back(member);
  }
  return all;
}

void Post::leave(int rank, std::span<const Member> members) const {
  put(left(rank), {});
  for (std::size_t other = 0; other < members.size(); ++other)
    if (lives(members[other].process) &&
        !std::filesystem::exists(folder_ / left(static_cast<int>(other))))
      return;
  std::error_code ignored;  // two may be the last
  std::filesystem::remove_all(folder_, ignored);
}

void Post::put(const std::string& name, std::span<const std::byte> bytes) const {
  const std::filesystem::path half = folder_ / (name + ".half");
  {
    std::ofstream file(half, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::error_code ignored;  // an aborted communicator has no folder any more
  std::filesystem::rename(half, folder_ / name, ignored);
}

std::optional<std::vector<std::byte>> Post::read(const std::string& name) const {
  std::ifstream file(folder_ / name, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(),
                 [](char each) { return static_cast<std::byte>(each); });
  return bytes;
}

void Post::remove(const std::string& name) const {
  std::error_code ignored;
  std::filesystem::remove(folder_ / name, ignored);
}

}  // namespace emulated_cuda
