// `rehearse calibrate --backend cuda`: small Programs on the GPUs, run by the executor that will
// run the scenarios, so its own cost is in what is measured.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "kernels/cuda/cuda_executor.hpp"
#include "kernels/cuda/cuda_gemm_fp8.hpp"
#include "sim/base/error.hpp"
#include "sim/engine/explain.hpp"
#include "sim/program/kernel_list.hpp"
#include "strategies/collectives/decide.hpp"
#include "tools/measure/bench_host.hpp"
#include "tools/measure/cuda_backend.hpp"
#include "tools/measure/line_fit.hpp"
#include "tools/output/progress.hpp"

namespace rehearse {

namespace {

constexpr std::size_t in_a_row = 20, runs = 5;

Slice bytes_at(std::uint32_t buffer, Bytes size) {
  return {static_cast<Buffer>(buffer), Bytes{0}, size};
}

/// The median time of a run, after one to warm up.
Time time_of(const Program& program, const std::vector<int>& device_of) {
  const CudaMemory memory{program, device_of};
  CudaExecutor executor{memory};
  std::vector<Time> times;
  executor.run(program);
  for (std::size_t i = 0; i < runs; ++i) times.push_back(executor.run(program).makespan);
  // A clock of half a microsecond may show nothing at all.
  return std::max(times[median_of(times)], Time::picoseconds(1000));
}

Time each(Time all, std::size_t count) {
  return Time::picoseconds(all.ps() / static_cast<std::int64_t>(count));
}

void add_scales(Program& program, Rank rank, Bytes half, std::size_t times) {
  KernelCall call{.kernel = Kernel::scale, .operands = 2};
  call.numbers[0] = 1.5;
  const std::vector<Access> accesses{{bytes_at(0, half), false}, {bytes_at(1, half), true}};
  for (std::size_t i = 0; i < times; ++i)
    program.add_compute(rank, Stream::compute, {program.name("scale")}, {}, {}, accesses,
                        {&call, 1});
}

struct Product {
  std::int64_t m, n, k;
  Precision precision;
};

void add_products(Program& program, Rank rank, const Product& of, std::size_t times) {
  KernelCall call{.kernel = Kernel::gemm, .operands = 3};
  std::ranges::copy(std::array{of.m, of.n, of.k}, call.sizes.begin());
  call.numbers[0] = 1;
  call.narrow = of.precision;
  const bool is_narrow = of.precision == Precision::fp16 || of.precision == Precision::bf16;
  const bool is_fp8 = of.precision == Precision::fp8;  // whose results are fp32
  call.narrow_operands = is_narrow ? 0b111 : is_fp8 ? 0b011 : 0;
  call.sizes[4] = is_fp8 ? 1 : 0;  // B lies transposed
  const std::int64_t width = is_narrow ? 2 : is_fp8 ? 1 : 4, result_width = is_narrow ? 2 : 4;
  const std::vector<Access> accesses{{bytes_at(2, Bytes{of.m * of.k * width}), false},
                                     {bytes_at(3, Bytes{of.k * of.n * width}), false},
                                     {bytes_at(4, Bytes{of.m * of.n * result_width}), true}};
  for (std::size_t i = 0; i < times; ++i)
    program.add_compute(rank, Stream::compute, {program.name("gemm")}, {}, {}, accesses,
                        {&call, 1});
}

void add_messages(Program& program, Rank source, Rank target, Bytes size, std::size_t times) {
  Transfer work;
  work.connection = program.connect({.source = source, .target = target});
  work.size = work.wire = size;
  // Beside each other, not over each other: what one sends is not where the other writes.
  work.source_buffer = static_cast<Buffer>(5);
  work.target_buffer = static_cast<Buffer>(6);
  for (std::size_t i = 0; i < times; ++i)
    program.add_transfer(Stream::comm, {program.name("message")}, work, {});
}

class CudaCalibrator {
 public:
  explicit CudaCalibrator(const HostCalibration& what) : what_{what}, progress_{what.quiet} {
    const std::size_t devices = static_cast<std::size_t>(device_count());
    if (devices < what.topology.rank_count())
      throw InputError(fmt::format("the machine has {} GPUs, and the cluster {} ranks: take fewer",
                                   devices, what.topology.rank_count()));
    for (std::size_t r = 0; r < what.topology.rank_count(); ++r)
      device_of_.push_back(static_cast<int>(r));
  }

  Profile run() {
    profile_.calibration.source = fmt::format("measured on {} of {} GPUs; {}", device_of_.size(),
                                              device_count(), describe_this_machine());
    measure_peers();
    measure_device();
    measure_collectives();
    progress_.show("");
    return std::move(profile_);
  }

 private:
  std::vector<Bytes> sizes() const {
    std::vector<Bytes> all;
    for (Bytes size = 4_KiB; size < what_.largest; size = Bytes{16 * size.count()})
      all.push_back(size);
    all.push_back(what_.largest);
    return all;
  }
  void add_rows(const std::vector<Sample>& samples, const LineFit& fit) {
    for (const Sample& sample : samples)
      profile_.rows.push_back(
          {sample.name, Time::round(Seconds{sample.y}), Time::round(Seconds{fit.at(sample.x)})});
  }

  LineFit fit_messages(Rank source, Rank target, bool both_ways, std::vector<Sample>& samples) {
    for (const Bytes size : sizes()) {
      Program program;
      add_messages(program, source, target, size, in_a_row);
      if (both_ways) add_messages(program, target, source, size, in_a_row);
      samples.push_back(
          {fmt::format("{} B from rank {} to {}", size.count(), index(source), index(target)),
           static_cast<double>(size.count()),
           each(time_of(program, device_of_), in_a_row).seconds().count()});
    }
    return fit_line(samples);
  }

  // Every pair, both ways; the profile takes the first pair of each kind of link.
  void measure_peers() {
    Routing routing(what_.topology);
    std::set<LinkKind> known;
    for (std::size_t a = 0; a < device_of_.size(); ++a)
      for (std::size_t b = 0; b < device_of_.size(); ++b) {
        if (a == b) continue;
        progress_.show(fmt::format("messages from rank {} to {}", a, b));
        const auto source = static_cast<Rank>(a), target = static_cast<Rank>(b);
        std::vector<Sample> samples, both;
        const LineFit fit = fit_messages(source, target, false, samples);
        profile_.note("peers: rank {} to {}: {:.2f} us, {:.3f} GB/s", a, b, 1e6 * fit.intercept,
                      1e-9 / std::max(fit.slope, 1e-15));
        if (a > b) continue;
        const LineFit fit_both = fit_messages(source, target, true, both);
        profile_.note("peers: rank {} and {} at once: {:.2f} us, {:.3f} GB/s each way", a, b,
                      1e6 * fit_both.intercept, 1e-9 / std::max(fit_both.slope, 1e-15));
        const auto route =
            routing.route(what_.topology.device_of(source), what_.topology.device_of(target));
        if (route.empty()) continue;
        const Link& link = what_.topology[*std::ranges::min_element(
            route, {}, [&](LinkId id) { return what_.topology[id].bandwidth.count(); })];
        if (!known.insert(link.kind).second) continue;
        add_rows(both, fit_both);
        add_link(link, fit_both, route.size());
      }
  }

  void add_link(const Link& link, const LineFit& fit, std::size_t hops) {
    const double share = 1 / std::max(fit.slope, 1e-15) / link.bandwidth.count();
    if (share > 100) {
      profile_.note("{}: {} bytes are too few to tell a bandwidth: take a greater --largest",
                    to_string(link.kind), what_.largest.count());
      return;
    }
    profile_.calibration.links.push_back(
        {link.kind, share, Time::round(Seconds{fit.intercept / static_cast<double>(hops)})});
  }

  void measure_device() {
    const Device& first = what_.topology[what_.topology.device_of(Rank{0})];
    if (first.accelerator >= what_.topology.accelerators.size()) return;
    const Accelerator& device = what_.topology.accelerators[first.accelerator];
    AcceleratorChanges changes;
    measure_memory(device, changes);
    measure_products(changes);
    measure_slowing(changes);
    profile_.calibration.devices.push_back({device.name, changes});
  }

  void measure_memory(const Accelerator& device, AcceleratorChanges& changes) {
    progress_.show("launches and memory");
    Program tiny;
    add_scales(tiny, Rank{0}, 4_B, in_a_row);
    profile_.note("a kernel in a row: {}", readable(each(time_of(tiny, device_of_), in_a_row)));
    std::vector<Sample> samples;
    for (const Bytes half : sizes()) {
      Program program;
      add_scales(program, Rank{0}, half, in_a_row);
      samples.push_back({fmt::format("scale {} B", 2 * half.count()),
                         static_cast<double>(2 * half.count()),
                         each(time_of(program, device_of_), in_a_row).seconds().count()});
    }
    const LineFit fit = fit_line(samples);
    const double rate = 1 / std::max(fit.slope, 1e-15);
    changes.launch_overhead = Time::round(Seconds{fit.intercept});
    changes.memory_efficiency = std::min(1.0, rate / device.memory_bandwidth.count());
    changes.memory_ramp = Bytes{0};
    profile_.note("memory-bound kernels: {:.2f} GB/s, {:.2f} us each", rate * 1e-9,
                  1e6 * fit.intercept);
    add_rows(samples, fit);
  }

  // As large as the longest message has room for, and thinner ones.
  void measure_products(AcceleratorChanges& changes) {
    std::int64_t side = 16;
    while (4 * side * side * 16 <= what_.largest.count() && side < 8192) side *= 4;
    std::vector precisions{Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};
    if (multiplies_fp8(0))
      precisions.push_back(Precision::fp8);
    else
      profile_.note("gemm fp8: this device has none");
    for (const Precision precision : precisions)
      for (const auto& [m, n, k] : {std::array{side, side, side}, std::array{side, side / 4, side},
                                    std::array{side / 4, side, side / 4}}) {
        // As cuBLASLt wants it.
        if (precision == Precision::fp8 && (m % 16 != 0 || n % 16 != 0 || k % 16 != 0)) continue;
        progress_.show(fmt::format("product {}x{}x{} in {}", m, n, k, to_string(precision)));
        Program program;
        add_products(program, Rank{0}, {m, n, k, precision}, in_a_row);
        const Time time = each(time_of(program, device_of_), in_a_row);
        changes.measured.push_back({{precision, m, n, k, 1}, time});
        profile_.note("gemm {}x{}x{} {}: {}, {:.3f} TFLOP/s", m, n, k, to_string(precision),
                      readable(time),
                      2e-12 * static_cast<double>(m * n * k) / time.seconds().count());
      }
  }

  void measure_slowing(AcceleratorChanges& changes) {
    if (device_of_.size() < 2) return;
    progress_.show("products beside messages");
    const auto computing = [](const Program& program, const Timeline& timeline) {
      Time end;
      for (std::size_t i = 0; i < program.size(); ++i)
        if (program.ops()[i].kind == WorkKind::compute) end = std::max(end, timeline.spans[i].end);
      return std::max(end, Time::picoseconds(1000)).seconds().count();
    };
    double seconds[2];
    for (const bool is_beside : {false, true}) {
      Program program;
      add_products(program, Rank{0}, {64, 64, 64, Precision::fp32}, in_a_row);
      if (is_beside) add_messages(program, Rank{0}, Rank{1}, what_.largest, in_a_row);
      const CudaMemory memory{program, device_of_};
      CudaExecutor executor{memory};
      executor.run(program);
      seconds[is_beside ? 1 : 0] = computing(program, executor.run(program));
    }
    changes.communication_share = std::clamp(1 - seconds[0] / seconds[1], 0.0, 0.95);
    profile_.note("products beside messages lose {:.0f} % of their rate",
                  100 * *changes.communication_share);
  }

  Program all_reduces(Bytes size) const {
    Program program;
    Collective work{.kind = CollectiveKind::all_reduce, .data = bytes_at(0, size)};
    for (std::size_t r = 0; r < device_of_.size(); ++r) work.group.push_back(static_cast<Rank>(r));
    for (std::size_t i = 0; i < in_a_row; ++i)
      program.add_collective(Stream::comm, {program.name("all_reduce")}, work, {});
    return program;
  }

  // NCCL's by algorithm and protocol, which it reads when a communicator is made; then ours.
  void measure_collectives() {
    Routing routing(what_.topology);
    CollectiveShape shape{.kind = CollectiveKind::all_reduce};
    for (std::size_t r = 0; r < device_of_.size(); ++r) shape.group.push_back(static_cast<Rank>(r));
    for (const Bytes size : sizes()) {
      for (const char* algorithm : {"Ring", "Tree"})
        for (const char* protocol : {"LL", "LL128", "Simple"}) {
          progress_.show(fmt::format("NCCL {} {}", algorithm, protocol));
          setenv("NCCL_ALGO", algorithm, 1);
          setenv("NCCL_PROTO", protocol, 1);
          profile_.note("NCCL all_reduce {} {} {} B: {}", algorithm, protocol, size.count(),
                        readable(each(time_of(all_reduces(size), device_of_), in_a_row)));
        }
      for (const std::string& name : runnable_algorithms(shape, what_.topology, {})) {
        progress_.show("our " + name);
        profile_.note("our all_reduce {} {} B: {}", name, size.count(),
                      readable(each(time_of(expand_collectives(all_reduces(size), routing,
                                                               {.algorithm = name}),
                                            device_of_),
                                    in_a_row)));
      }
    }
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
  }

  const HostCalibration& what_;
  std::vector<int> device_of_;
  Progress progress_;
  Profile profile_;
};

}  // namespace

Profile calibrate_on_gpus(const HostCalibration& what) { return CudaCalibrator(what).run(); }

}  // namespace rehearse
