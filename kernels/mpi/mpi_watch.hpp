// Are the others still there? Every process says once a second that it lives; a rank that is silent
// for too long, or whose process is gone from this machine, ends the run with its name.
//
//   rank 1 killed    mpirun ends the rest; those on its machine see that the process is gone
//   rank 1 stopped   still there, but not a word: named after `patience`; between runs, where that
//                    is long, those on its machine see that it is stopped
//   host cut off     the same for its ranks; and they, alone, name somebody of the others
//
// One rank tells (the lowest of those that are heard of), the others end without a word.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.hpp"

namespace rehearse {

class MpiWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// How long a rank may be silent: while ops run, everybody talks all the time; between runs a
  /// rank may lower a program or write a file.
  static constexpr std::chrono::seconds in_a_run{5}, between_runs{60};

  struct Peer {
    std::string name;      // "rank 3 (host7)"
    std::string machine;   // where process numbers mean the same
    std::int64_t process;  // its number there
  };
  MpiWatch(Rank self, std::vector<Peer> peers);  // by rank; collective
  ~MpiWatch();
  MpiWatch(const MpiWatch&) = delete;
  MpiWatch& operator=(const MpiWatch&) = delete;

  /// Any message of a rank is a sign of life.
  void heard(Rank rank) { heard_[index(rank)] = Clock::now(); }
  /// From now on silence counts from now, and longer than this is too long.
  void expect_words(Clock::duration patience);
  /// Asked now and then: true ends the run.
  void stop_when(std::function<bool()> stop) { stop_ = std::move(stop); }

  /// This process ends with an error, and says why to the user; the others need not.
  void say_that_it_is_told();
  /// To be called again and again while waiting. Throws DeviceError, or ToldElsewhere when another
  /// rank tells.
  void look();

 private:
  struct Words;  // MPI's part
  void hear();
  void say(std::uint32_t text);  // to all others
  void wait_for_word();          // of another, that it has told
  std::optional<Rank> gone() const;
  std::optional<Rank> stopped() const;
  std::optional<Rank> silent() const;
  bool is_silent(std::size_t rank, Clock::duration patience) const;
  char state_here(std::size_t rank) const;
  [[noreturn]] void end_stopped();
  [[noreturn]] void accuse(Rank culprit, const std::string& what);

  Rank self_;
  std::vector<Peer> peers_;
  std::unique_ptr<Words> words_;
  std::vector<Clock::time_point> heard_;  // by rank
  Clock::time_point last_look_, last_beat_;
  Clock::duration patience_ = between_runs;
  std::function<bool()> stop_;
  bool told_elsewhere_ = false;  // another rank has said who it was
};

/// The same for all processes that this start of the machine's kernel has run.
std::string boot_of_this_machine();
/// Of this process: where its number means something, and the number.
MpiWatch::Peer peer_of_this_process();

}  // namespace rehearse
