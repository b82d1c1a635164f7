// Runs a Program with a process for each rank, started by mpirun on one host or many: the same
// program, the same bits as with threads (kernels/host/host_executor.hpp).
#pragma once

#include <memory>

#include "kernels/host/host_executor.hpp"
#include "kernels/mpi/mpi_plan.hpp"
#include "kernels/mpi/mpi_world.hpp"

namespace rehearse {

class MpiCollectives;
class MpiMessages;

class MpiExecutor final : public Executor {
 public:
  /// Every process makes one of the same program; `memory` holds its own rank's buffers at least.
  /// All outlive it. Throws InputError when the program has more ranks than the job.
  MpiExecutor(const MpiWorld& world, const Program& program, HostMemory& memory,
              HostOptions options = {});
  ~MpiExecutor() override;

  /// The program it was made for, once more. The same Timeline on every rank.
  Timeline run(const Program& program) override;

 private:
  const MpiWorld& world_;
  const Program& program_;
  HostMemory& memory_;
  HostOptions options_;
  MpiPlan plan_;
  std::unique_ptr<MpiMessages> messages_;  // MPI's types stay in the .cpp files
  std::unique_ptr<MpiCollectives> collectives_;
};

}  // namespace rehearse
