// What the module with MPI offers to a program that is not linked with it: MpiWorld and MpiExecutor
// as functions.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/host/host_executor.hpp"

namespace rehearse {

class MpiWorld;

struct MpiFunctions {
  using Texts = std::vector<std::string>;

  MpiWorld* (*join)(bool share_processors);  // the caller's to leave
  void (*leave)(MpiWorld* world);
  std::unique_ptr<Executor> (*executor)(const MpiWorld& world, const Program& program,
                                        HostMemory& memory, HostOptions options);
  std::size_t (*local_number)(const MpiWorld& world);
  Texts (*gather)(const MpiWorld& world, const std::string& mine);
  Texts (*collect)(const MpiWorld& world, const std::string& mine);
  std::string (*share)(const MpiWorld& world, const std::string& text);
  void (*barrier)(const MpiWorld& world);
  void (*watch)(const MpiWorld& world, std::function<bool()> stop, std::chrono::seconds patience);
  void (*look)(const MpiWorld& world);
};

}  // namespace rehearse

extern "C" const rehearse::MpiFunctions* rehearse_mpi();
