// What ranks of one communicator in different processes bring to each other, as files of a folder:
// one for each rank that joined, one for each arrival at a collective or message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace emulated_cuda {

class Post {
 public:
  /// The same folder for the same number, which ncclGetUniqueId gave to all.
  explicit Post(std::uint64_t number);
  static std::uint64_t new_number();

  struct Member {
    std::int64_t process = 0;
    int device = 0;
  };
  void join(int rank, int device) const;
  /// By rank, once all have joined.
  std::optional<std::vector<Member>> members(int ranks) const;
  /// The last to leave takes the folder away; so does who is left by the dead.
  void leave(int rank, std::span<const Member> members) const;

  /// Whole or not at all.
  void put(const std::string& name, std::span<const std::byte> bytes) const;
  std::optional<std::vector<std::byte>> read(const std::string& name) const;
  void remove(const std::string& name) const;

 private:
  std::filesystem::path folder_;
};

/// Whether a process of this machine is there.
bool lives(std::int64_t process);

}  // namespace emulated_cuda
