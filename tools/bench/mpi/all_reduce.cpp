// `mpirun -n 2 rehearse_mpi_bench`: our ring all-reduce between two threads, and Open MPI's own
// MPI_Allreduce between two processes over shared memory, in turns; prints both and their ratio.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/host/host_executor.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "topology/generators.hpp"

namespace rehearse {
namespace {

constexpr Bytes size = 64_MiB;
constexpr std::size_t rounds = 15;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Open MPI waits with its processor busy; ours has to have it.
void wait_asleep() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run() {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    if (rank == 0) fmt::print(stderr, "start it as: mpirun -n 2 rehearse_mpi_bench\n");
    return 2;
  }
  const Topology machine = star(2, {10.0_GBps, 1_us});
  Routing routing(machine);
  const CollectiveShape shape{.kind = CollectiveKind::all_reduce, .group = {Rank{0}, Rank{1}}};
  const Program program =
      CollectiveRehearsal(algorithm("ring"), shape, routing, Detail::transfers).program(size);
  HostMemory memory(program);
  HostExecutor executor(memory);
  std::vector<float> own(static_cast<std::size_t>(size.count()) / 4, 0);
  std::vector<double> ours, theirs;
  for (std::size_t i = 0; i < rounds + 2; ++i) {  // the first two touch the memory
    if (rank == 0) ours.push_back(executor.run(program).makespan.seconds().count());
    wait_asleep();
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    MPI_Allreduce(MPI_IN_PLACE, own.data(), static_cast<int>(own.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    double taken = seconds_since(begin);
    MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    theirs.push_back(taken);
  }
  if (rank != 0) return 0;
  ours.erase(ours.begin(), ours.begin() + 2);
  theirs.erase(theirs.begin(), theirs.begin() + 2);
  fmt::print("all_reduce of 64 MiB, 2 ranks, medians of {} in turns\n", rounds);
  fmt::print("  ours, 2 threads          {:8.2f} ms\n", 1e3 * median(ours));
  fmt::print("  MPI_Allreduce, 2 ranks   {:8.2f} ms\n", 1e3 * median(theirs));
  fmt::print("  MPI's time over ours     {:8.2f}\n", median(theirs) / median(ours));
  return 0;
}

}  // namespace
}  // namespace rehearse

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const int code = rehearse::run();
  MPI_Finalize();
  return code;
}
