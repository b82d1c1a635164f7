// Strict reading of one table: every key is asked for by name and type, whatever was not asked for
// is an unknown key, and all mistakes are collected so that a user sees them at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "topology/files/document.hpp"

namespace rehearse {

using Problems = std::vector<Problem>;

/// Throws all problems, sorted by place, if there are any.
void throw_if_any(Problems problems);

/// Runs `work`; an InputError without a place gets this one.
template <class Work>
auto at_place(const Place& place, Work work) {
  try {
    return work();
  } catch (const InputError& error) {
    Problems placed{error.problems().begin(), error.problems().end()};
    for (Problem& problem : placed)
      if (problem.place.file.empty()) problem.place = place;
    throw InputError(std::move(placed));
  }
}

class Fields {
 public:
  /// `what` names the table in messages: "[node]".
  Fields(const Value& table, std::string what, Problems& problems);

  // Each gives nothing when the key is absent or wrong; wrong is a problem, absent is not.
  const Value* any(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::size_t> count(std::string_view key, std::size_t least = 0,
                                   std::size_t most = PTRDIFF_MAX);
  std::optional<double> number(std::string_view key);
  std::optional<BytesPerSecond> bandwidth(std::string_view key);  // above zero
  std::optional<Time> time(std::string_view key);                 // at most 1 s
  std::optional<Time> duration(std::string_view key);             // above zero, at most 1 h
  std::optional<Bytes> bytes(std::string_view key);
  std::optional<FlopsPerSecond> flops_rate(std::string_view key);  // above zero
  /// One of `words`; its position.
  std::optional<std::size_t> choice(std::string_view key, std::span<const std::string_view> words);
  /// A table, or an array of tables, under a key.
  const Value* table(std::string_view key);
  std::vector<const Value*> tables(std::string_view key);

  /// Absent is a problem, too; noted by whichever `finish` comes.
  void require(std::string_view key);
  /// The keys not asked for are unknown: one problem each. One that is a misspelling of a required
  /// key stands for both mistakes.
  void finish();
  /// When the table's kind is wrong, nobody knows which other keys it may have.
  void finish_without_kind();

  const Place& place() const { return table_.place; }
  Place place_of(std::string_view key) const;
  void complain(std::string_view key, std::string message);

 private:
  template <class Read>
  auto take(std::string_view key, Read read) -> decltype(read(Value{}).value);
  template <class T>
  std::optional<T> quantity(std::string_view key, T (*parse)(std::string_view),
                            std::string_view example);

  const Value& table_;
  std::string what_;
  Problems& problems_;
  std::vector<std::string> known_, missing_;
};

}  // namespace rehearse
