// Reading whole files, and what their bytes must be.
#include "topology/files/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

namespace rehearse {

namespace {

constexpr std::size_t largest = std::size_t{64} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

// Of the files of its kind in the same folder.
std::string similar_name(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().extension() == file.extension()) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());  // folders have no order
  return did_you_mean(file.stem().string(), names);
}

[[noreturn]] void fail(const std::string& file) {
  const int cause = errno;
  throw InputError(Place{file}, fmt::format("cannot read: {}{}", std::strerror(cause),
                                            cause == ENOENT ? similar_name(file) : ""));
}

std::string read_all(std::FILE* in, const std::string& file) {
  std::string text;
  char block[1 << 16];
  while (const std::size_t got = std::fread(block, 1, sizeof block, in)) {
    text.append(block, got);
    if (text.size() > largest) throw InputError(Place{file}, "is larger than 64 MiB");
  }
  if (std::ferror(in)) fail(file);
  return text;
}

// How many bytes the UTF-8 sequence at the begin of `text` has; 0 when it is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and what lies beyond the last code point.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

}  // namespace

std::string read_text_file(const std::string& file) {
  // A pipe is as good as a file: `rehearse topo show <(make-topology)`.
  std::error_code status;
  const std::filesystem::file_type type = std::filesystem::status(file, status).type();
  if (type == std::filesystem::file_type::directory)
    throw InputError(Place{file}, "is a directory, not a file");
  if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::block)
    throw InputError(Place{file}, "is a device, not a file");
  const OpenFile in{std::fopen(file.c_str(), "rb")};
  if (!in) fail(file);
  return read_all(in.get(), file);
}

std::string read_standard_input() { return read_all(stdin, "<stdin>"); }

std::string path_beside(const std::string& name, const Place& mentioned_at) {
  if (mentioned_at.line == 0) return name;
  const std::filesystem::path folder = std::filesystem::path{mentioned_at.file}.parent_path();
  return (folder / name).string();
}

void check_utf8(std::string_view text, const std::string& file) {
  std::uint32_t line = 1, column = 1;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0)
      throw InputError(
          Place{file, line, column},
          fmt::format("byte 0x{:02x} is not UTF-8 text", static_cast<unsigned char>(text.front())));
    ++column;
    if (text.front() == '\n') ++line, column = 1;
    text.remove_prefix(length);
  }
}

std::string one_line(std::string_view message) {
  std::string line{message.substr(0, 300)};
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  while (!line.empty() && (line.back() == ' ' || line.back() == '.')) line.pop_back();
  return line;
}

}  // namespace rehearse
