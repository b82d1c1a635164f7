// `rehearse bench --backend cuda`: collectives on GPUs, NCCL's own or our schedules, in the table
// of the host's bench: checked once on numbers whose sums are exact, then timed many times in a
// row.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/host/collective_check.hpp"
#include "sim/base/error.hpp"
#include "tools/measure/cuda_devices.hpp"
#include "tools/measure/interrupt.hpp"

namespace rehearse {

namespace {

/// Of one program: its memory on the GPUs that are here, and what runs it.
class OnGpus {
 public:
  OnGpus(const CollectiveJob& job, const Program& program, const std::function<bool()>& stop,
         std::span<const CudaMemory::Place> more = {})
      : program_{program},
        memory_{program, device_of_ranks(job.shape.group.size(), job.ranks), more},
        executor_{memory_, cuda_options(job.shape.group.size(), job.ranks, stop)} {}

  const CudaMemory& memory() const { return memory_; }
  Time run() { return executor_.run(program_).makespan; }

 private:
  const Program& program_;
  CudaMemory memory_;
  CudaExecutor executor_;
};

std::int64_t count_wrong(const CollectiveJob& job, const Program& program, Bytes size,
                         const std::function<bool()>& stop) {
  const CollectiveCheck check{
      job.shape.kind, job.shape.group.size(), job.shape.root,
      static_cast<std::size_t>(size.count() / bytes_of(job.numbers).count()), job.numbers};
  const Slice data{Buffer{0}, Bytes{0}, check.room()}, result{Buffer{1}, Bytes{0}, check.room()};
  std::vector<CudaMemory::Place> places;
  for (const Rank rank : job.shape.group)
    places.insert(places.end(), {{rank, data}, {rank, result}});
  OnGpus gpus{job, program, stop, places};
  const CudaMemory& memory = gpus.memory();
  for (std::size_t p = 0; p < job.shape.group.size(); ++p) {
    const Rank rank = job.shape.group[p];
    if (!memory.is_here(rank)) continue;
    std::vector<std::byte> mine = memory.read(rank, data), other = memory.read(rank, result);
    check.fill(p, mine, other);
    memory.load(rank, data, mine);
    memory.load(rank, result, other);
  }
  gpus.run();
  std::int64_t wrong = 0;
  for (std::size_t p = 0; p < job.shape.group.size(); ++p) {
    const Rank rank = job.shape.group[p];
    if (memory.is_here(rank)) {
      std::vector<std::byte> mine = memory.read(rank, data), other = memory.read(rank, result);
      wrong += static_cast<std::int64_t>(check.wrong(p, mine, other));
    }
  }
  return job.ranks.sum(wrong);
}

MeasuredCollective measure_on_gpus(const CollectiveJob& job, const std::string& algorithm,
                                   Bytes size, const std::function<bool()>& stop) {
  const Program once = collectives_in_a_row(job, algorithm, size, 1).program;
  const Program many = collectives_in_a_row(job, algorithm, size, job.iterations).program;
  const std::int64_t wrong = count_wrong(job, once, size, stop);
  OnGpus gpus{job, many, stop};
  gpus.run();
  std::vector<Time> times;
  for (std::size_t i = 0; i < 2 * job.series; ++i)
    times.push_back(Time::picoseconds(gpus.run().ps() / static_cast<std::int64_t>(job.iterations)));
  return summarised(algorithm, size, wrong, times);
}

}  // namespace

void bench_on_gpus(HostBench bench, const CudaChoice& choice) {
  choose(choice);
  const InterruptGuard interrupt;
  const std::function<bool()> stop = [&] { return interrupt.was_interrupted(); };
  if (bench.ranks == 0 && bench.cluster.empty() && !is_a_process())
    bench.ranks = static_cast<std::size_t>(device_count());
  bench.backend = "cuda";
  bench.describe = describe_gpus;
  bench.measure = [&](const CollectiveJob& job, const std::string& algorithm, Bytes size) {
    return measure_on_gpus(job, algorithm, size, stop);
  };
  bench_on_host(bench);
}

}  // namespace rehearse
