// Collectives as MPI's own, one communicator for each group of ranks and each stream. All are of
// the kind that does not wait (MPI_Iallreduce and so on): ranks may begin two of them on different
// streams in any order, and a rank that died is still noticed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/host/host_memory.hpp"
#include "kernels/mpi/mpi_world.hpp"
#include "sim/program/collective_part.hpp"

namespace rehearse {

class MpiCollectives {
 public:
  /// Made by every process alike, with the parts of all ranks. All arguments outlive it.
  MpiCollectives(const MpiWorld& world, const Program& program,
                 std::span<const CollectivePart> parts, HostMemory& memory);
  ~MpiCollectives();
  MpiCollectives(const MpiCollectives&) = delete;
  MpiCollectives& operator=(const MpiCollectives&) = delete;

  bool has(OpId op) const { return parts_.contains(op); }
  void begin(OpId op);
  /// This rank's parts that have ended since the last call.
  std::vector<OpId> poll();
  bool is_idle() const { return under_way_.empty(); }

 private:
  using Group = std::pair<std::vector<Rank>, Stream>;
  struct UnderWay {
    OpId op{};
    std::vector<MPI_Request> requests;
    std::vector<int> counts, places, other_counts, other_places;  // MPI reads them until the end
    std::vector<std::byte> beside;                                // what is laid into `target` then
    std::span<std::byte> target;
  };
  struct Sums {  // how numbers are added, where MPI does not know them
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op how = MPI_OP_NULL;
  };
  class Call;
  const Sums& sums_of(const Collective& work);

  const MpiWorld& world_;
  HostMemory& memory_;
  std::map<OpId, std::pair<const CollectivePart*, MPI_Comm>> parts_;  // of this rank
  std::map<Group, MPI_Comm> communicators_;
  std::map<std::pair<Precision, Combine>, Sums> sums_;
  std::list<UnderWay> under_way_;
};

}  // namespace rehearse
