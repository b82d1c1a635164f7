// Collectives of other numbers than fp32 and of maxima on emulated GPUs, by NCCL and lowered by
// every algorithm. Where a slice does not divide evenly both must cut it at the same places.
#include <cstring>

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/host/collective_check.hpp"
#include "kernels/math/number_formats.hpp"
#include "sim/program/verify.hpp"
#include "strategies/collectives/decide.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/support/collectives.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse::collectives_test {
namespace {

using Data = std::vector<std::byte>;

/// By rank, before and behind a collective.
struct Ranks {
  std::vector<Data> data, result;
};

Program program_of(const Collective& work) {
  Program program;
  program.add_collective(Stream::comm, {program.name("collective")}, work, {});
  return program;
}

void run_on_gpus(const Program& program, Ranks& ranks, std::uint64_t seed) {
  const std::size_t count = ranks.data.size();
  emulated_cuda::reset(
      {.devices = static_cast<int>(count), .memory = 1 << 20, .seed = seed, .peers = seed % 3 > 0});
  {
    std::vector<int> devices;
    std::vector<CudaMemory::Place> places;
    const auto whole = [](Buffer buffer, const Data& of) {
      return Slice{buffer, Bytes{0}, Bytes{static_cast<std::int64_t>(of.size())}};
    };
    const auto each = [&](auto visit) {
      for (std::size_t r = 0; r < count; ++r) {
        visit(static_cast<Rank>(r), whole(Buffer{0}, ranks.data[r]), ranks.data[r]);
        visit(static_cast<Rank>(r), whole(Buffer{1}, ranks.result[r]), ranks.result[r]);
      }
    };
    for (std::size_t r = 0; r < count; ++r) devices.push_back(static_cast<int>(r));
    each([&](Rank rank, const Slice& slice, Data&) { places.push_back({rank, slice}); });
    const CudaMemory memory{program, devices, places};
    each([&](Rank rank, const Slice& slice, Data& bytes) { memory.load(rank, slice, bytes); });
    CudaExecutor{memory}.run(program);
    each([&](Rank rank, const Slice& slice, Data& bytes) { bytes = memory.read(rank, slice); });
  }
  EXPECT_EQ(emulated_cuda::complaints(), std::vector<std::string>{});
  EXPECT_EQ(emulated_cuda::leaks(), "");
}

// One node, and two where there can be; switches that add and copy.
std::vector<Topology> machines_of(std::size_t ranks) {
  const Cable cable{50.0_GBps, 1_us};
  std::vector<Topology> all{star(ranks, cable, true)};
  if (ranks >= 4)
    all.push_back(cluster(star(ranks / 2, cable, true), 2, FatTree{.cable = cable, .radix = 8}));
  return all;
}

/// Visits the collective as NCCL's, and as the transfers of every algorithm that can do it.
template <class Visit>
void for_each_way(const Collective& work, Visit visit) {
  const Program whole = program_of(work);
  visit("NCCL's", whole);
  for (const Topology& machine : machines_of(work.group.size())) {
    Routing routing{machine};
    CollectiveShape shape = shape_of(work.kind, machine);
    shape.root = work.root;
    for (const Algorithm& how : algorithms()) {
      if (how.refusal(shape, machine)) continue;
      const Program lowered =
          expand_collectives(whole, routing, {.algorithm = std::string(how.name)});
      ASSERT_FALSE(verify(lowered)) << how.name;
      visit(std::string(how.name), lowered);
    }
  }
}

Collective collective_of(const CollectiveCheck& of, Combine combine = Combine::sum) {
  Collective work;
  work.kind = of.kind;
  for (std::size_t rank = 0; rank < of.ranks; ++rank) work.group.push_back(static_cast<Rank>(rank));
  work.data = {Buffer{0}, Bytes{0}, static_cast<std::int64_t>(of.elements) * bytes_of(of.numbers)};
  work.result = {Buffer{1}, Bytes{0},
                 of.kind == CollectiveKind::send_recv ? work.data.size : of.room()};
  work.root = of.root;
  work.combine = combine;
  work.numbers = of.numbers;
  return work;
}

Ranks room_for(const CollectiveCheck& check) {
  const Data empty(static_cast<std::size_t>(check.room().count()));
  return {std::vector(check.ranks, empty), std::vector(check.ranks, empty)};
}

TEST(CudaCollectives, OddCountsOf16BitNumbers) {
  std::size_t done = 0;
  for (const Precision numbers : {Precision::fp16, Precision::bf16})
    for (const std::size_t ranks : {2, 4, 8})
      for (const std::size_t elements : {1, 5, 33})
        for (const CollectiveKind kind : collective_kinds()) {
          const CollectiveCheck check{kind, ranks, static_cast<std::uint32_t>(elements % ranks),
                                      elements, numbers};
          for_each_way(collective_of(check), [&](const std::string& how, const Program& program) {
            SCOPED_TRACE(how + " " + std::string(to_string(kind)) + " of " +
                         std::to_string(elements) + " numbers on " + std::to_string(ranks));
            Ranks all = room_for(check);
            for (std::size_t r = 0; r < ranks; ++r) check.fill(r, all.data[r], all.result[r]);
            run_on_gpus(program, all, ++done);
            for (std::size_t r = 0; r < ranks; ++r)
              EXPECT_EQ(check.wrong(r, all.data[r], all.result[r]), 0U) << "rank " << r;
          });
        }
  EXPECT_GT(done, 400U);
}

// Below zero: neither a sum nor memory that was never written is as large.
float number_of(std::size_t rank, std::size_t i) {
  return -1.0F - static_cast<float>((rank * 37 + i * 11) % 64);
}

void write(Precision numbers, Data& into, std::size_t i, float value) {
  const Fp16 narrow = to_fp16(value);
  if (numbers == Precision::fp16)
    std::memcpy(into.data() + 2 * i, &narrow, 2);
  else
    std::memcpy(into.data() + 4 * i, &value, 4);
}

float read(Precision numbers, const Data& from, std::size_t i) {
  Fp16 narrow{};
  float value = 0;
  std::memcpy(&narrow, from.data() + 2 * i, 2);
  if (numbers == Precision::fp16) return to_float(narrow);
  std::memcpy(&value, from.data() + 4 * i, 4);
  return value;
}

TEST(CudaCollectives, MaximaByEveryAlgorithmAndInTheSwitch) {
  std::size_t done = 0, in_switch = 0;
  for (const Precision numbers : {Precision::fp32, Precision::fp16})
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::reduce, CollectiveKind::reduce_scatter}) {
      const CollectiveCheck size{kind, 4, 1, 21, numbers};
      const Collective work = collective_of(size, Combine::max);
      const Cut parts{work.data, size.ranks};
      const auto owns = [&](std::size_t rank, std::size_t i) {
        const auto at = static_cast<std::int64_t>(i) * bytes_of(numbers);
        if (kind == CollectiveKind::reduce) return rank == work.root;
        return kind == CollectiveKind::all_reduce ||
               (at >= parts[rank].offset && at < parts[rank].offset + parts[rank].size);
      };
      for_each_way(work, [&](const std::string& how, const Program& program) {
        SCOPED_TRACE(how + " " + std::string(to_string(kind)));
        for (const Connection& way : program.connections())
          in_switch += way.shape == Connection::Shape::switch_reduce ? 1 : 0;
        Ranks all = room_for(size);
        for (std::size_t r = 0; r < size.ranks; ++r)
          for (std::size_t i = 0; i < size.elements; ++i)
            write(numbers, all.data[r], i, number_of(r, i));
        run_on_gpus(program, all, ++done);
        for (std::size_t r = 0; r < size.ranks; ++r)
          for (std::size_t i = 0; i < size.elements; ++i) {
            float largest = number_of(0, i);
            for (std::size_t p = 1; p < size.ranks; ++p)
              largest = std::max(largest, number_of(p, i));
            if (owns(r, i)) {
              EXPECT_EQ(read(numbers, all.data[r], i), largest) << "rank " << r << ", " << i;
            }
          }
      });
    }
  EXPECT_GT(done, 15U);
  EXPECT_GT(in_switch, 8U);
}

}  // namespace
}  // namespace rehearse::collectives_test
