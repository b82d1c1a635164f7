// Whose fault it is, as types: InputError is the user's (exit 2), CheckFailed says that a result
// failed one of our own checks (exit 1), DeviceError is the machine's (exit 3).
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

/// Where in a user's file; line and column count from 1, 0 means unknown.
struct Place {
  std::string file;
  std::uint32_t line = 0, column = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct Problem {
  Place place;
  std::string message;
};

/// `file:12:8: error: message`, as compilers print it; without a file `error: message`.
std::string to_string(const Problem&);

/// Everything wrong with the user's input, all problems at once.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Problem> problems);
  InputError(Place place, std::string message);
  explicit InputError(std::string message) : InputError(Place{}, std::move(message)) {}
  std::span<const Problem> problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// A result that must not be shown: a deadlock, a race, an answer faster than physics.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Nothing here can run what was asked for (no GPU, no SimGrid in this build): exit 77.
class NothingToRunOn : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "; did you mean 'ring'?" for the nearest candidate, else for one of whose parts
/// ('micro_batch_size') the word has some, or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace rehearse
