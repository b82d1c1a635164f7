// Small Programs; medians of what their runs took.
#include "tools/measure/measure_host.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/program/kernel_list.hpp"

namespace rehearse {

namespace {

double seconds(Time time) { return time.seconds().count(); }

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

std::size_t how_many(Bytes size) {
  return size > 4_MiB ? 2 : size > 1_MiB ? 4 : size > 64_KiB ? 16 : 100;
}

Program there_and_back(Rank source, Rank target, Bytes size) {
  Pair pair(source, target);
  std::vector<OpId> before;
  for (std::size_t i = 0; i < how_many(size); ++i) {
    const OpId id = pair.program.add_transfer(
        Stream::comm, pair.label, message(i % 2 == 0 ? pair.there : pair.back, size, i), before);
    before = {id};
  }
  return std::move(pair.program);
}

// As in a ring: each next message waits for the one that came from the other side, and every other
// one is added to what is there.
Program both_at_once(Rank source, Rank target, Bytes size) {
  Pair pair(source, target);
  std::vector<OpId> there, back;
  for (std::size_t i = 0; i < how_many(size); ++i) {
    Transfer forth = message(pair.there, size, i), back_again = message(pair.back, size, i);
    forth.combine = back_again.combine = i % 2 == 0 ? Combine::sum : Combine::overwrite;
    const OpId going = pair.program.add_transfer(Stream::comm, pair.label, forth, back);
    const OpId coming = pair.program.add_transfer(Stream::comm, pair.label, back_again, there);
    there = {going};
    back = {coming};
  }
  return std::move(pair.program);
}

// Two messages each way over the same link, on streams of their own; the next two wait for these.
Program two_at_once(Rank source, Rank target, Bytes size) {
  Pair pair(source, target);
  std::vector<OpId> before;
  for (std::size_t i = 0; i < how_many(size); ++i) {
    std::vector<OpId> sent;
    for (const std::size_t lane : {0UL, 1UL})
      for (const ConnectionId way : {pair.there, pair.back})
        sent.push_back(pair.program.add_transfer(comm_lane(lane), pair.label,
                                                 message(way, size, 2 * i + lane), before));
    before = sent;
  }
  return std::move(pair.program);
}

constexpr std::size_t tiny_messages = 200;

Program tiny_in_a_row(Rank source, Rank target) {
  Pair pair(source, target);
  for (std::size_t i = 0; i < tiny_messages; ++i)
    pair.program.add_transfer(Stream::comm, pair.label, message(pair.there, 4_B, i), {});
  return std::move(pair.program);
}

// The numbers do not matter to how long it takes; each call has bytes of its own.
Program scales_in_a_row(std::size_t ranks, Bytes traffic) {
  Program program;
  const Label label{program.name("scale")};
  KernelCall call{.kernel = Kernel::scale, .operands = 2};
  call.numbers = {0.5, 0, 0, 0};
  const Bytes half{traffic.count() / 8 * 4};
  for (std::int64_t i = 0; i < (traffic > 16_MiB ? 5 : 30); ++i) {
    const std::array<Access, 2> accesses{
        {{{Buffer{0}, i * half, half}, false}, {{Buffer{1}, i * half, half}, true}}};
    for (std::size_t r = 0; r < ranks; ++r)
      program.add_compute(static_cast<Rank>(r), Stream::compute, label, {}, {}, accesses,
                          std::array{call});
  }
  return program;
}

Program products_and_messages(const Gemm& shape, Bytes size, bool computes, bool sends) {
  Pair pair(Rank{0}, Rank{1});
  KernelCall product{.kernel = Kernel::gemm, .operands = 3};
  product.sizes = {shape.m, shape.n, shape.k, 0, 0, 0, 0, 0};
  product.numbers = {1, 0, 0, 0};
  const std::array<Access, 3> accesses{
      {{{Buffer{2}, Bytes{0}, Bytes{4 * shape.m * shape.k}}, false},
       {{Buffer{3}, Bytes{0}, Bytes{4 * shape.k * shape.n}}, false},
       {{Buffer{4}, Bytes{0}, Bytes{4 * shape.m * shape.n}}, true}}};
  for (std::size_t i = 0; i < 40; ++i) {
    if (computes)
      for (const Rank rank : {Rank{0}, Rank{1}})
        pair.program.add_compute(rank, Stream::compute, pair.label, {}, {}, accesses,
                                 std::array{product});
    if (sends)
      for (const ConnectionId way : {pair.there, pair.back})
        pair.program.add_transfer(Stream::comm, pair.label, message(way, size, i), {});
  }
  return std::move(pair.program);
}

// Of the first half: later ones may be alone again.
double median_message(const Trial& trial) {
  const Program& program = trial.program();
  std::vector<double> spans;
  for (const Timeline& run : trial.runs())
    for (std::size_t i = 0; i < program.size() / 2; ++i)
      if (program.ops()[i].kind == WorkKind::transfer)
        spans.push_back(seconds(run.spans[i].end - run.spans[i].begin));
  return std::max(median(std::move(spans)), 1e-12);
}

}  // namespace

LinkTrials::LinkTrials(Trials& trials, Rank source, Rank target, Bytes largest)
    : source_{source}, target_{target} {
  for (Bytes size = 4_B; size <= largest; size = Bytes{4 * size.count()}) {
    one_way_.push_back({size, &trials.add(there_and_back(source, target, size))});
    both_ways_.push_back({size, &trials.add(both_at_once(source, target, size))});
  }
  for (Bytes size = 64_KiB; size <= largest; size = Bytes{8 * size.count()})
    crowded_.push_back({size, &trials.add(two_at_once(source, target, size))});
  in_a_row_ = &trials.add(tiny_in_a_row(source, target));
}

LinkMeasurement LinkTrials::measured() const {
  LinkMeasurement link{.source = source_, .target = target_};
  const auto each = [](const Sized& sized) {
    return median_makespan(*sized.trial) / static_cast<double>(how_many(sized.size));
  };
  const auto samples = [&](const std::vector<Sized>& all) {
    std::vector<Sample> made;
    for (const Sized& sized : all) {
      const double y = each(sized);
      // Bytes of a step travel in its long messages: those count for more.
      made.push_back({std::to_string(sized.size.count()) + " B",
                      static_cast<double>(sized.size.count()), y, std::sqrt(y)});
    }
    return made;
  };
  link.samples = samples(both_ways_);
  link.one_way = fit_line(samples(one_way_));
  link.both_ways = fit_line(link.samples);
  link.crowded = samples(crowded_);
  for (Sample& sample : link.crowded) sample.x *= 2;
  link.per_message = Time::round(Seconds{median_makespan(*in_a_row_) / tiny_messages});
  return link;
}

ScaleTrial::ScaleTrial(Trials& trials, std::size_t ranks, Bytes traffic)
    : traffic_{traffic}, trial_{trials.add(scales_in_a_row(ranks, traffic))} {}

Time ScaleTrial::measured() const {
  std::vector<double> spans;
  for (const Timeline& run : trial_.runs())
    for (const Timeline::Span& span : run.spans) spans.push_back(seconds(span.end - span.begin));
  return Time::round(Seconds{median(std::move(spans))});
}

SlowingTrials::SlowingTrials(Trials& trials, const Gemm& shape, Bytes message)
    : both_{trials.add(products_and_messages(shape, message, true, true))},
      products_{trials.add(products_and_messages(shape, message, true, false))},
      messages_{trials.add(products_and_messages(shape, message, false, true))} {}

Slowing SlowingTrials::measured() const {
  const double longer = median_makespan(both_) - median_makespan(products_);
  return {std::clamp(longer / median_makespan(messages_), 0.0, 0.9),
          std::clamp(1 - median_message(messages_) / median_message(both_), 0.0, 0.95)};
}

}  // namespace rehearse
