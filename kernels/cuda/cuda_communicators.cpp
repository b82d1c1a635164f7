// One process makes a group's communicators at once; several agree on an id for each group.
#include "kernels/cuda/cuda_communicators.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/math/cuda_try.hpp"
#include "sim/base/assert.hpp"
#include "sim/base/error.hpp"

namespace rehearse {

namespace {

// In the order of the program, which is the same everywhere.
std::vector<std::vector<Rank>> groups_across(const Program& program,
                                             const CudaProcesses& processes) {
  std::vector<std::vector<Rank>> groups;
  auto add = [&, seen = std::set<std::vector<Rank>>{}](std::vector<Rank> group) mutable {
    if (group.size() > 1 && seen.insert(group).second) groups.push_back(std::move(group));
  };
  for (const Program::Op& op : program.ops()) {
    if (op.kind == WorkKind::collective) add(program.collective(op).group);
    if (op.kind != WorkKind::transfer) continue;
    const Connection& way = program[program.transfer(op).connection];
    const bool is_plain = way.shape == Connection::Shape::point_to_point;
    const auto is_apart = [&](Rank rank) { return processes.of(rank) != processes.of(op.rank); };
    if (is_plain && is_apart(way.target)) add({way.source, way.target});
    if (!is_plain && std::ranges::any_of(way.others, is_apart))
      throw InputError(
          "no switch adds or copies between processes here; choose another algorithm, --library "
          "nccl, or one process with all GPUs");
  }
  return groups;
}

}  // namespace

CudaCommunicators::CudaCommunicators(const Program& program, const CudaMemory& memory,
                                     const std::optional<CudaProcesses>& processes)
    : memory_{memory}, may_make_{!processes} {
  if (processes) join(groups_across(program, *processes), *processes);
}

// The first rank of a group makes its id, and all learn all ids at once. Then everybody joins its
// groups in the same order.
void CudaCommunicators::join(const std::vector<std::vector<Rank>>& groups,
                             const CudaProcesses& processes) {
  std::string mine;
  for (const std::vector<Rank>& group : groups) {
    if (processes.of(group.front()) != processes.self) continue;
    ncclUniqueId id;
    NCCL_TRY(ncclGetUniqueId(&id));
    mine.append(id.internal, sizeof id.internal);
  }
  const std::vector<std::string> ids = processes.gather(mine);
  std::vector<std::size_t> taken(ids.size());
  for (const std::vector<Rank>& group : groups) {
    const std::size_t leader = processes.of(group.front());
    ncclUniqueId id;
    std::memcpy(id.internal, ids.at(leader).data() + taken[leader], sizeof id.internal);
    taken[leader] += sizeof id.internal;
    std::vector<ncclComm_t> made(group.size());
    if (std::ranges::none_of(group, [&](Rank rank) { return memory_.is_here(rank); })) continue;
    NCCL_TRY(ncclGroupStart());
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!memory_.is_here(group[i])) continue;
      CUDA_TRY(cudaSetDevice(memory_.device_of(group[i])));
      NCCL_TRY(ncclCommInitRank(&made[i], static_cast<int>(group.size()), id, static_cast<int>(i)));
    }
    NCCL_TRY(ncclGroupEnd());
    for (ncclComm_t each : made) communicators_[group].emplace_back(each);
  }
}

std::span<const CommunicatorHandle> CudaCommunicators::of(const std::vector<Rank>& group) {
  std::vector<CommunicatorHandle>& communicators = communicators_[group];
  if (!communicators.empty()) return communicators;
  ASSERT(may_make_);
  std::vector<int> devices;
  for (const Rank rank : group) devices.push_back(memory_.device_of(rank));
  if (std::set<int>{devices.begin(), devices.end()}.size() != devices.size())
    throw DeviceError("NCCL needs a device of its own for every rank: use fewer ranks");
  std::vector<ncclComm_t> made(group.size());
  NCCL_TRY(ncclCommInitAll(made.data(), static_cast<int>(group.size()), devices.data()));
  for (ncclComm_t each : made) communicators.emplace_back(each);
  return communicators;
}

void CudaCommunicators::check() const {
  for (const auto& [group, communicators] : communicators_)
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      if (communicators[i] == nullptr) continue;
      ncclResult_t error = ncclSuccess;
      NCCL_TRY(ncclCommGetAsyncError(communicators[i].get(), &error));
      if (error != ncclSuccess && error != ncclInProgress)
        throw DeviceError(
            fmt::format("NCCL on rank {}: {}", index(group[i]), ncclGetErrorString(error)));
    }
}

}  // namespace rehearse
