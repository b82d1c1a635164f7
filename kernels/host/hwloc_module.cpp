// hwloc knows cores from hyperthreads, and which of them this process may use.
#include <hwloc.h>

#include <vector>

#include "kernels/host/host_pin.hpp"

namespace {

// Read once; reading it takes milliseconds.
class Machine {
 public:
  Machine() {
    is_known_ = hwloc_topology_init(&topology_) == 0 && hwloc_topology_load(topology_) == 0;
  }
  ~Machine() { hwloc_topology_destroy(topology_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void bind(std::size_t rank, std::size_t ranks) const {
    if (!is_known_) return;
    const int processors = hwloc_get_nbobjs_by_type(topology_, HWLOC_OBJ_PU);
    if (processors <= 0 || ranks > static_cast<std::size_t>(processors)) return;
    std::vector<hwloc_cpuset_t> sets(ranks);
    hwloc_obj_t root = hwloc_get_root_obj(topology_);
    if (hwloc_distrib(topology_, &root, 1, sets.data(), static_cast<unsigned>(ranks), 1 << 20, 0))
      return;
    hwloc_set_cpubind(topology_, sets[rank], HWLOC_CPUBIND_THREAD);  // a wish
    for (hwloc_cpuset_t set : sets) hwloc_bitmap_free(set);
  }

 private:
  hwloc_topology_t topology_{};
  bool is_known_ = false;
};

}  // namespace

void rehearse_hwloc(std::size_t rank, std::size_t ranks) {
  static const Machine machine;
  if (rank < ranks) machine.bind(rank, ranks);
}
