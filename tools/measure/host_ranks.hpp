// Where the ranks of a real run are: threads of this process, or the processes that mpirun started.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/host/host_executor.hpp"

namespace rehearse {

class MpiWorld;
struct MpiFunctions;

class HostRanks {
 public:
  HostRanks();  // joins the job when mpirun started this process

  bool are_processes() const { return world_ != nullptr; }
  /// How many mpirun started; threads are as many as asked for, so 0.
  std::size_t processes() const;
  /// Which of them this is; 0 with threads.
  std::size_t number() const;
  /// The one that prints and writes.
  bool is_first() const;
  /// Whether the rank's buffers are in this process.
  bool is_here(Rank rank) const;
  /// "2 threads" or "8 processes on 4 hosts".
  std::string describe(std::size_t ranks) const;

  HostMemory memory(const Program& program) const;
  /// For this very program; it and the memory must outlive the executor. InputError when mpirun
  /// started too few processes.
  std::unique_ptr<Executor> executor(const Program& program, HostMemory& memory,
                                     HostOptions options) const;
  /// The sum of what each process says; with threads just that.
  std::int64_t sum(std::int64_t mine) const;
  /// Every process's text, by rank.
  std::vector<std::string> gather(const std::string& mine) const;
  /// The same at the first process only, for long texts.
  std::vector<std::string> collect(const std::string& mine) const;
  /// The first process's text, everywhere.
  std::string share(std::string text) const;
  /// How many of the processes before this one are on its machine.
  std::size_t local_number() const;
  /// This process's clock minus the first one's.
  Time clock_ahead() const;
  /// For runs that are not the executor's of this class: what ends them, and while they wait, are
  /// the others there? Throws when one is lost.
  void look_after_others(std::function<bool()> stop) const;
  void look() const;
  /// Waits for all to come to their end; MPI's own last wait would not notice who never comes.
  void finish() const;

 private:
  const MpiFunctions* mpi_ = nullptr;
  std::unique_ptr<MpiWorld, void (*)(MpiWorld*)> world_{nullptr, nullptr};
};

/// InputError when ranks are threads: MPI's own collectives are between processes.
void need_processes(const HostRanks& ranks);

/// Whether mpirun started this process; one of several, and not the first.
bool is_a_process();
bool is_another_process();

}  // namespace rehearse
