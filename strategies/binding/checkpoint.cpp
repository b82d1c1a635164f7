// Writing and reading, with everything checked first.
#include "strategies/binding/checkpoint.hpp"

#include <algorithm>
#include <cstring>

#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"
#include "sim/program/program_text.hpp"

namespace rehearse {

namespace {

constexpr std::string_view magic = "rehearse checkpoint 1\n";

// FNV-1a.
std::uint64_t hash(std::string_view bytes, std::uint64_t from = 0xcbf29ce484222325) {
  for (const char byte : bytes) from = (from ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return from;
}

std::uint64_t key_of(const BoundStep& step) { return hash(to_text(step.program())); }

void put(std::string& out, std::uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint64_t get(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

std::string checkpoint_of(const BoundStep& step, std::uint64_t next_step,
                          const RankMemory& memory) {
  std::string out{magic};
  put(out, next_step);
  put(out, key_of(step));
  put(out, step.persistent.size());
  for (const auto& [rank, slice] : step.persistent) {
    const std::span<const std::byte> bytes = memory(rank, slice);
    ASSERT(bytes.size() == static_cast<std::size_t>(slice.size.count()));
    put(out, bytes.size());
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  put(out, hash(out));
  return out;
}

std::uint64_t restore(const BoundStep& step, std::string_view bytes, const std::string& name,
                      const RankMemory& memory) {
  const auto fail = [&](std::string_view what) {
    throw InputError({name}, std::string{what} + "; begin anew, or name another checkpoint");
  };
  const std::size_t head = magic.size() + 3 * 8;
  if (!bytes.starts_with(magic)) fail("this is no checkpoint");
  if (bytes.size() < head + 8) fail("this checkpoint is cut short");
  const std::string_view all = bytes.substr(0, bytes.size() - 8);
  if (get(bytes, all.size()) != hash(all)) fail("this checkpoint is damaged or cut short");
  if (get(bytes, magic.size() + 8) != key_of(step))
    fail("this checkpoint is of another model, strategy or optimizer");
  if (get(bytes, magic.size() + 16) != step.persistent.size())
    fail("this checkpoint is of other ranks");
  std::size_t at = head;
  for (const bool changes : {false, true}) {
    at = head;
    for (const auto& [rank, slice] : step.persistent) {
      const auto size = static_cast<std::size_t>(slice.size.count());
      if (all.size() < at + 8 || get(all, at) != size || all.size() < at + 8 + size)
        fail("this checkpoint is of other ranks");
      const std::span<std::byte> target = memory(rank, slice);
      if (changes && !target.empty()) std::memcpy(target.data(), all.data() + at + 8, size);
      at += 8 + size;
    }
  }
  return get(bytes, magic.size());
}

}  // namespace rehearse
