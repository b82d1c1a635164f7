// The job this process is a rank of, when mpirun started it. One object for the life of a process;
// nobody outside kernels/mpi sees a type of MPI.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/mpi/mpi_watch.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"

namespace rehearse {

class MpiWorld {
 public:
  /// MPI_Init_thread: only one thread at a time will call MPI. Ranks that `share_processors`, or
  /// are more than their machine has, wait asleep.
  explicit MpiWorld(bool share_processors = false);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  Rank rank() const { return rank_; }
  std::size_t size() const { return hosts_.size(); }
  /// How many ranks before this one are on its host.
  std::size_t local_number() const;
  /// "rank 3 (host7)", for messages.
  std::string name(Rank rank) const;
  /// This process's clock minus rank 0's; zero where both run on one machine.
  Time clock_ahead() const { return clock_ahead_; }
  /// Over the other ranks; everything here that waits looks at it meanwhile.
  MpiWatch& watch() const { return *watch_; }

  bool shares_processors() const { return shares_processors_; }

  /// Waiting for the others; meanwhile this is called again and again.
  using Meanwhile = std::function<void()>;
  void barrier(const Meanwhile& meanwhile) const;
  /// Every rank's text, by rank; on every rank.
  std::vector<std::string> gather(const std::string& mine) const;
  /// The same on rank 0 only, for long texts.
  std::vector<std::string> collect(const std::string& mine) const;
  /// Rank 0's text on every rank.
  std::string share(std::string text) const;
  /// Element by element the largest of all ranks'.
  void largest(std::vector<std::int64_t>& values, const Meanwhile& meanwhile) const;

 private:
  void synchronise_clocks();

  Rank rank_{};
  std::vector<std::string> hosts_;  // by rank
  Time clock_ahead_;
  bool shares_processors_ = false;
  std::unique_ptr<MpiWatch> watch_;  // once all know each other's names
};

}  // namespace rehearse
