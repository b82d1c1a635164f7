// Programs on emulated GPUs: every lowered collective and every one of NCCL's gives exactly the
// numbers of the slow interpreter, under many orders of work; kernels run as on the host; a fault
// is one line, and nothing is left behind.
#include "kernels/cuda/cuda_executor.hpp"

#include <cstring>
#include <optional>

#include "kernels/host/run_call.hpp"
#include "sim/base/error.hpp"
#include "sim/program/kernel_list.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/kernels/numbers.hpp"
#include "tests/support/collectives.hpp"
#include "tests/support/interpreter.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::executor_test {
namespace {

std::vector<int> one_each(std::size_t ranks) {
  std::vector<int> devices;
  for (std::size_t rank = 0; rank < ranks; ++rank) devices.push_back(static_cast<int>(rank));
  return devices;
}

Slice whole(Buffer buffer, std::size_t elements) {
  return {buffer, Bytes{0}, Bytes{static_cast<std::int64_t>(4 * elements)}};
}

Floats floats_of(const std::vector<std::byte>& bytes) {
  Floats values(bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Data and result of every rank, a little longer than a collective's.
std::vector<CudaMemory::Place> places(std::size_t ranks, std::size_t elements) {
  std::vector<CudaMemory::Place> all;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (const Buffer buffer : {Buffer{0}, Buffer{1}})
      all.push_back({static_cast<Rank>(rank), whole(buffer, elements + ranks)});
  return all;
}

/// The program's buffers filled with small whole numbers, here and in the interpreter.
class Both {
 public:
  Both(const Program& program, std::size_t ranks, std::size_t elements)
      : program_{program},
        ranks_{ranks},
        elements_{elements},
        memory_{program, one_each(ranks), places(ranks, elements)},
        plain_{program} {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Floats values(elements);
      auto& wanted = plain_.buffer(static_cast<Rank>(rank), Buffer{0}, elements);
      for (std::size_t i = 0; i < elements; ++i) {
        wanted[i] = static_cast<std::int64_t>(rank * 1000 + i * 7 % 911);
        values[i] = static_cast<float>(wanted[i]);
      }
      memory_.load(static_cast<Rank>(rank), whole(Buffer{0}, elements),
                   std::as_bytes(std::span{values}));
    }
    plain_.run();
  }

  Timeline run(CudaOptions options = {}) { return CudaExecutor{memory_, options}.run(program_); }

  void expect_same() {
    for (std::size_t r = 0; r < ranks_; ++r)
      for (const Buffer buffer : {Buffer{0}, Buffer{1}}) {
        const auto rank = static_cast<Rank>(r);
        const auto& wanted = plain_.buffer(rank, buffer, elements_ + ranks_);
        const Floats got = values(rank, buffer);
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(got[i], static_cast<float>(wanted[i]))
              << "rank " << r << " buffer " << index(buffer) << " element " << i;
      }
  }
  Floats values(Rank rank, Buffer buffer) const {
    return floats_of(memory_.read(rank, whole(buffer, elements_ + ranks_)));
  }

 private:
  const Program& program_;
  std::size_t ranks_, elements_;
  CudaMemory memory_;
  Interpreter plain_;
};

void expect_clean() {
  EXPECT_EQ(emulated_cuda::complaints(), std::vector<std::string>{});
  EXPECT_EQ(emulated_cuda::leaks(), "");
}

// Two nodes where there can be, and a switch that adds and copies.
Topology machine_of(std::size_t ranks) {
  const Cable cable{50.0_GBps, 1_us};
  if (ranks < 4) return star(ranks, cable, true);
  return cluster(star(ranks / 2, cable, true), 2, FatTree{.cable = cable, .radix = 8});
}

/// Every lowered collective on so many ranks, each on a machine of its own.
std::size_t run_all(std::size_t ranks, std::uint64_t seed, bool has_peers,
                    const CudaOptions& options) {
  const Topology topology = machine_of(ranks);
  Routing routing(topology);
  Draw draw(seed);
  std::size_t done = 0;
  for (const CollectiveKind kind : collective_kinds())
    for (const Algorithm& how : algorithms()) {
      CollectiveShape shape = shape_of(kind, topology, draw.below(3));
      shape.root = static_cast<std::uint32_t>(draw.below(ranks));
      if (how.refusal(shape, topology)) continue;
      const std::size_t elements = draw.once_in(4) ? draw.below(4) : draw.below(200);
      SCOPED_TRACE(std::string(how.name) + " " + std::string(to_string(kind)) + " on " +
                   std::to_string(ranks) + " ranks, " + std::to_string(elements) +
                   " elements, seed " + std::to_string(seed));
      emulated_cuda::reset({.devices = static_cast<int>(ranks),
                            .memory = 1 << 20,
                            .seed = seed,
                            .peers = has_peers});
      const Program program = CollectiveRehearsal(how, shape, routing, Detail::transfers)
                                  .program(Bytes{static_cast<std::int64_t>(4 * elements)});
      {
        Both both{program, ranks, elements};
        both.run(options);
        both.expect_same();
      }
      expect_clean();
      if (::testing::Test::HasFailure()) return done;
      ++done;
    }
  return done;
}

TEST(CudaExecutor, LoweredCollectivesAreExactOn2And4And8GpusOver20Seeds) {
  std::size_t done = 0;
  for (std::uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed)
    for (const std::size_t ranks : {2, 4, 8}) done += run_all(ranks, seed, true, {});
  EXPECT_GT(done, 900U);
}

TEST(CudaExecutor, WithoutPeerAccessThroughStaging) { EXPECT_GT(run_all(4, 21, false, {}), 15U); }

TEST(CudaExecutor, BetweenNodesThroughNccl) {
  CudaOptions options;
  options.node_of = {0, 0, 1, 1};
  for (std::uint64_t seed = 22; seed < 25; ++seed) EXPECT_GT(run_all(4, seed, true, options), 15U);
}

Program collective_program(CollectiveKind kind, std::size_t ranks, std::size_t elements,
                           std::uint32_t root) {
  Program program;
  Collective work;
  work.kind = kind;
  for (std::size_t rank = 0; rank < ranks; ++rank) work.group.push_back(static_cast<Rank>(rank));
  work.data = whole(Buffer{0}, elements);
  work.result = whole(Buffer{1}, elements + ranks);
  if (kind == CollectiveKind::send_recv) work.result = whole(Buffer{1}, elements);
  work.root = root;
  program.add_collective(Stream::comm, {program.name("collective")}, work, {});
  return program;
}

float element_of(std::size_t rank, std::size_t i) {
  return static_cast<float>(rank * 1000 + i * 7 % 911);
}

// What a rank must hold of its data after one of NCCL's collectives; none: anything.
std::optional<float> wanted_of(CollectiveKind kind, std::size_t ranks, std::uint32_t root,
                               const Cut& parts, std::size_t rank, std::size_t i) {
  float sum = 0;
  for (std::size_t r = 0; r < ranks; ++r) sum += element_of(r, i);
  std::size_t owner = 0;
  const auto at = Bytes{static_cast<std::int64_t>(4 * i)};
  while (!(at >= parts[owner].offset && at < parts[owner].offset + parts[owner].size)) ++owner;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return sum;
    case CollectiveKind::reduce:
      return rank == root ? std::optional{sum} : std::nullopt;
    case CollectiveKind::broadcast:
      return element_of(root, i);
    case CollectiveKind::reduce_scatter:
      return owner == rank ? std::optional{sum} : std::nullopt;
    case CollectiveKind::all_gather:
      return element_of(owner, i);
    default:
      return std::nullopt;
  }
}

TEST(CudaExecutor, NcclsOwnCollectives) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const CollectiveKind kind : collective_kinds()) {
      Draw draw(seed);
      const std::size_t ranks = std::size_t{2} << draw.below(3);
      const std::size_t elements = draw.once_in(2) ? 8 * ranks : 1 + draw.below(100);
      const auto root = static_cast<std::uint32_t>(draw.below(ranks));
      SCOPED_TRACE(std::string(to_string(kind)) + " of " + std::to_string(ranks) + " ranks, " +
                   std::to_string(elements) + " elements, seed " + std::to_string(seed));
      emulated_cuda::reset({.devices = static_cast<int>(ranks), .memory = 1 << 20, .seed = seed});
      const Program program = collective_program(kind, ranks, elements, root);
      {
        Both both{program, ranks, elements};
        both.run();
        const Cut parts{whole(Buffer{0}, elements), ranks};
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          const Floats data = both.values(static_cast<Rank>(rank), Buffer{0});
          const Floats result = both.values(static_cast<Rank>(rank), Buffer{1});
          for (std::size_t i = 0; i < elements; ++i) {
            const auto wanted = wanted_of(kind, ranks, root, parts, rank, i);
            ASSERT_EQ(data[i], wanted.value_or(data[i])) << "rank " << rank << " element " << i;
            if (kind == CollectiveKind::send_recv) {
              ASSERT_EQ(result[i], element_of((rank + ranks - 1) % ranks, i));
            }
          }
        }
      }
      expect_clean();
    }
}

}  // namespace
}  // namespace rehearse::executor_test
