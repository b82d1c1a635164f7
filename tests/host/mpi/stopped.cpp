// Rank 1 is stopped between two runs, where the others have patience for a minute: they are to name
// it within seconds all the same. Run by mpirun; what it prints is what CTest looks for.
#include <fmt/format.h>

#include <csignal>

#include "kernels/mpi/mpi_world.hpp"
#include "sim/base/error.hpp"
#include "sim/base/told_elsewhere.hpp"

int main() {
  using namespace rehearse;
  try {
    const MpiWorld world;
    if (world.rank() == Rank{1}) std::raise(SIGSTOP);
    world.barrier({});
  } catch (const DeviceError& error) {
    fmt::print("told: {}\n", error.what());
    return 3;
  } catch (const ToldElsewhere&) {
    return 3;
  }
  fmt::print("nobody noticed\n");
  return 1;
}
