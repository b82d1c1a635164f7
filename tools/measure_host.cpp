// Small Programs, each run several times; medians of their spans.
#include "tools/measure_host.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/step_state.hpp"
#include "sim/kernel_list.hpp"

namespace rehearse {

namespace {

constexpr std::size_t runs = 5;
constexpr Bytes cold = 64_MiB;  // more than caches keep of a rank's data between two uses

double seconds(Time time) { return time.seconds().count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double median_makespan(const HostRanks& ranks, const Program& program) {
  HostMemory memory = ranks.memory(program);
  const auto executor = ranks.executor(program, memory, {});
  executor->run(program);
  std::vector<double> times;
  for (std::size_t i = 0; i < runs; ++i) times.push_back(seconds(executor->run(program).makespan));
  return median(times);
}

// Each message has bytes of its own: gradients that are sent were not sent before, and what lies in
// the caches from the last time would look many times as fast.
Transfer message(ConnectionId way, Bytes size, std::size_t number) {
  const Bytes offset = static_cast<std::int64_t>(number) * size;
  return {.connection = way,
          .source_buffer = Buffer{0},
          .target_buffer = Buffer{1},
          .source_offset = offset,
          .target_offset = offset,
          .size = size,
          .wire = size};
}

struct Pair {
  Program program;
  Label label;
  ConnectionId there{}, back{};
  Pair(Rank source, Rank target) {
    label = {program.name("message")};
    there = program.connect({.source = source, .target = target});
    back = program.connect({.source = target, .target = source});
  }
};

std::size_t how_many(Bytes size) { return size > 4_MiB ? 4 : size > 64_KiB ? 16 : 100; }

double there_and_back(const HostRanks& ranks, Rank source, Rank target, Bytes size) {
  Pair pair(source, target);
  const std::size_t count = how_many(size);
  std::vector<OpId> before;
  for (std::size_t i = 0; i < count; ++i) {
    const OpId id = pair.program.add_transfer(
        Stream::comm, pair.label, message(i % 2 == 0 ? pair.there : pair.back, size, i), before);
    before = {id};
  }
  return median_makespan(ranks, pair.program) / static_cast<double>(count);
}

// As in a ring: each next message waits for the one that came from the other side, and every other
// one is added to what is there.
double both_at_once(const HostRanks& ranks, Rank source, Rank target, Bytes size) {
  Pair pair(source, target);
  const std::size_t count = how_many(size);
  std::vector<OpId> there, back;
  for (std::size_t i = 0; i < count; ++i) {
    Transfer forth = message(pair.there, size, i), back_again = message(pair.back, size, i);
    forth.combine = back_again.combine = i % 2 == 0 ? Combine::sum : Combine::overwrite;
    const OpId going = pair.program.add_transfer(Stream::comm, pair.label, forth, back);
    const OpId coming = pair.program.add_transfer(Stream::comm, pair.label, back_again, there);
    there = {going};
    back = {coming};
  }
  return median_makespan(ranks, pair.program) / static_cast<double>(count);
}

// Two messages each way over the same link, on streams of their own; the next two wait for these.
double two_at_once(const HostRanks& ranks, Rank source, Rank target, Bytes size) {
  Pair pair(source, target);
  const std::size_t count = how_many(size);
  std::vector<OpId> before;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<OpId> sent;
    for (const std::size_t lane : {0UL, 1UL})
      for (const ConnectionId way : {pair.there, pair.back})
        sent.push_back(pair.program.add_transfer(comm_lane(lane), pair.label,
                                                 message(way, size, 2 * i + lane), before));
    before = sent;
  }
  return median_makespan(ranks, pair.program) / static_cast<double>(count);
}

double in_a_row(const HostRanks& ranks, Rank source, Rank target) {
  Pair pair(source, target);
  constexpr std::size_t count = 200;
  for (std::size_t i = 0; i < count; ++i)
    pair.program.add_transfer(Stream::comm, pair.label, message(pair.there, 4_B, i), {});
  return median_makespan(ranks, pair.program) / static_cast<double>(count);
}

/// The same call `count` times in a row on each of the ranks.
Program calls_in_rows(const KernelCall& call, std::span<const Bytes> operands, std::size_t ranks,
                      std::size_t count) {
  Program program;
  const Label label{program.name("kernel")};
  std::vector<Access> accesses;
  for (std::size_t i = 0; i < operands.size(); ++i)
    accesses.push_back(
        {{static_cast<Buffer>(i), Bytes{0}, operands[i]}, writes_operand(call.kernel, i)});
  for (std::size_t i = 0; i < count; ++i) {
    for (Access& access : accesses)
      access.slice.offset = static_cast<std::int64_t>(i) * access.slice.size;
    for (std::size_t r = 0; r < ranks; ++r)
      program.add_compute(static_cast<Rank>(r), Stream::compute, label, {}, {}, accesses,
                          std::array{call});
  }
  return program;
}

template <class Number>
std::span<Number> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<Number*>(bytes.data()), bytes.size() / sizeof(Number)};
}

// An optimizer that finds zeros in its state believes the step to be void, and exp and tanh of zero
// take a third of the time of any other. Positive, as second moments and norms are.
void fill(std::span<std::byte> bytes, Content content) {
  if (content == Content::state)
    for (StepState& state : as<StepState>(bytes)) state = StepState{};
  if (content != Content::numbers) return;
  std::uint32_t draw = 1;
  for (float& number : as<float>(bytes)) {
    draw = 1664525 * draw + 1013904223;
    number = static_cast<float>(1 + (draw >> 8)) / 16777216.0F;
  }
}

KernelMeasurement measure_calls(const HostRanks& ranks, const Program& program,
                                const std::function<void(HostMemory&)>& prepare = {}) {
  HostMemory memory = ranks.memory(program);
  if (prepare) prepare(memory);
  const auto executor = ranks.executor(program, memory, {});
  executor->run(program);
  std::vector<double> spans;
  for (std::size_t i = 0; i < 3; ++i)
    for (const Timeline::Span& span : executor->run(program).spans)
      spans.push_back(seconds(span.end - span.begin));
  std::sort(spans.begin(), spans.end());
  const double middle = spans[spans.size() / 2];
  return {Time::round(Seconds{middle}),
          (spans[9 * spans.size() / 10] - spans[spans.size() / 10]) / std::max(middle, 1e-12)};
}

KernelCall gemm_call(const Gemm& shape) {
  KernelCall call{.kernel = Kernel::gemm, .operands = 3};
  call.sizes = {shape.m, shape.n, shape.k, 0, 0, 0, 0, 0};
  call.numbers = {1, 0, 0, 0};
  return call;
}

std::array<Bytes, 3> gemm_operands(const Gemm& shape) {
  return {Bytes{4 * shape.m * shape.k}, Bytes{4 * shape.k * shape.n}, Bytes{4 * shape.m * shape.n}};
}

std::size_t repeats(double flops) { return flops > 1e9 ? 3 : flops > 1e8 ? 8 : 30; }

}  // namespace

LinkMeasurement measure_link(const HostRanks& ranks, Rank source, Rank target, Bytes largest) {
  LinkMeasurement link{.source = source, .target = target};
  std::vector<Sample> one_way;
  for (Bytes size = 4_B; size <= largest; size = Bytes{4 * size.count()}) {
    const std::string name = std::to_string(size.count()) + " B";
    const auto x = static_cast<double>(size.count());
    // Bytes of a step travel in its long messages: those count for more.
    const auto sample = [&](double y) { return Sample{name, x, y, std::sqrt(y)}; };
    one_way.push_back(sample(there_and_back(ranks, source, target, size)));
    link.samples.push_back(sample(both_at_once(ranks, source, target, size)));
  }
  for (Bytes size = 64_KiB; size <= largest; size = Bytes{8 * size.count()})
    link.crowded.push_back({std::to_string(size.count()) + " B",
                            2 * static_cast<double>(size.count()),
                            two_at_once(ranks, source, target, size)});
  link.one_way = fit_line(one_way);
  link.both_ways = fit_line(link.samples);
  link.per_message = Time::round(Seconds{in_a_row(ranks, source, target)});
  return link;
}

KernelMeasurement measure_gemm(const HostRanks& ranks, std::size_t ranks_at_once,
                               const Gemm& shape) {
  const double flops = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                       static_cast<double>(shape.k);
  const auto operands = gemm_operands(shape);
  return measure_calls(ranks,
                       calls_in_rows(gemm_call(shape), operands, ranks_at_once, repeats(flops)));
}

KernelMeasurement measure_op(const HostRanks& ranks, std::size_t ranks_at_once,
                             const Program& program, const Program::Op& op,
                             const std::function<Content(const Slice&)>& content) {
  // The same bytes of the op are the same bytes here; each next call has others.
  std::vector<Slice> slices;
  std::vector<std::size_t> which;
  Bytes touched;
  for (const Access& access : program.accesses(op)) {
    const auto at = std::find(slices.begin(), slices.end(), access.slice);
    which.push_back(static_cast<std::size_t>(at - slices.begin()));
    if (at != slices.end()) continue;
    slices.push_back(access.slice);
    touched += access.slice.size;
  }
  const std::size_t count = std::clamp<std::size_t>(
      static_cast<std::size_t>(cold.count() / std::max<std::int64_t>(touched.count(), 1)), 5, 40);
  Program made;
  const Label label{made.name("kernel")};
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Access> accesses(program.accesses(op).begin(), program.accesses(op).end());
    for (std::size_t a = 0; a < accesses.size(); ++a)
      accesses[a].slice = {static_cast<Buffer>(which[a]),
                           static_cast<std::int64_t>(i) * accesses[a].slice.size,
                           accesses[a].slice.size};
    for (std::size_t r = 0; r < ranks_at_once; ++r)
      made.add_compute(static_cast<Rank>(r), Stream::compute, label, program.compute(op), {},
                       accesses, program.calls(op));
  }
  return measure_calls(ranks, made, [&](HostMemory& memory) {
    for (std::size_t b = 0; b < slices.size(); ++b)
      for (std::size_t r = 0; r < ranks_at_once; ++r)
        if (ranks.is_here(static_cast<Rank>(r)))
          fill(memory.buffer(static_cast<Rank>(r), static_cast<Buffer>(b)), content(slices[b]));
  });
}

KernelMeasurement measure_scale(const HostRanks& ranks, std::size_t ranks_at_once, Bytes traffic) {
  KernelCall call{.kernel = Kernel::scale, .operands = 2};
  call.numbers = {0.5, 0, 0, 0};
  const std::array<Bytes, 2> operands{Bytes{traffic.count() / 8 * 4},
                                      Bytes{traffic.count() / 8 * 4}};
  return measure_calls(ranks,
                       calls_in_rows(call, operands, ranks_at_once, traffic > 16_MiB ? 5 : 30));
}

Slowing measure_slowing(const HostRanks& ranks, const Gemm& shape, Bytes size) {
  const auto build = [&](bool computes, bool sends) {
    Pair pair(Rank{0}, Rank{1});
    const auto operands = gemm_operands(shape);
    std::vector<Access> accesses;
    for (std::size_t i = 0; i < 3; ++i)
      accesses.push_back({{static_cast<Buffer>(2 + i), Bytes{0}, operands[i]}, i == 2});
    for (std::size_t i = 0; i < 40; ++i) {
      if (computes)
        for (const Rank rank : {Rank{0}, Rank{1}})
          pair.program.add_compute(rank, Stream::compute, pair.label, {}, {}, accesses,
                                   std::array{gemm_call(shape)});
      if (sends)
        for (const ConnectionId way : {pair.there, pair.back})
          pair.program.add_transfer(Stream::comm, pair.label, message(way, size, i), {});
    }
    return std::move(pair.program);
  };
  const Program both = build(true, true), products = build(true, false),
                messages = build(false, true);
  struct Figures {
    double makespan = 0, message = 0;
  };
  const auto figures_of = [&](const Program& program) {
    HostMemory memory = ranks.memory(program);
    const auto executor = ranks.executor(program, memory, {});
    executor->run(program);
    std::vector<double> makespans, spans{0};
    for (std::size_t run = 0; run < runs; ++run) {
      const Timeline timeline = executor->run(program);
      makespans.push_back(seconds(timeline.makespan));
      for (std::size_t i = 0; i < program.size() / 2; ++i)  // later ones may be alone again
        if (program.ops()[i].kind == WorkKind::transfer)
          spans.push_back(seconds(timeline.spans[i].end - timeline.spans[i].begin));
    }
    return Figures{median(makespans), std::max(median(spans), 1e-12)};
  };
  const Figures together = figures_of(both), apart = figures_of(messages);
  const double longer = together.makespan - figures_of(products).makespan;
  return {std::clamp(longer / apart.makespan, 0.0, 0.9),
          std::clamp(1 - apart.message / together.message, 0.0, 0.95)};
}

}  // namespace rehearse
