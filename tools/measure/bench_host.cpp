// A collective is checked once on numbers whose sums are exact, then timed many times in a row on
// zeros (sums of sums would leave every format's range), as nccl-tests times it.
#include "tools/measure/bench_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/host/collective_check.hpp"
#include "sim/base/error.hpp"
#include "sim/engine/explain.hpp"
#include "sim/scenario/calibration.hpp"
#include "strategies/collectives/decide.hpp"
#include "strategies/collectives/expand.hpp"
#include "strategies/collectives/rehearsal.hpp"
#include "tools/output/output_file.hpp"
#include "tools/output/progress.hpp"
#include "topology/formats/cluster.hpp"
#include "topology/generators.hpp"

namespace rehearse {

Expanded collectives_in_a_row(const CollectiveJob& job, const std::string& algorithm, Bytes size,
                              std::size_t times) {
  Program whole;
  const Label label{whole.name(to_string(job.shape.kind))};
  for (std::size_t i = 0; i < times; ++i)
    whole.add_collective(Stream::comm, label,
                         {.kind = job.shape.kind,
                          .group = job.shape.group,
                          .data = {Buffer{0}, Bytes{0}, size},
                          .result = {Buffer{1}, Bytes{0}, size},
                          .root = job.shape.root,
                          .combine = Combine::sum,
                          .numbers = job.numbers},
                         {});
  if (algorithm == nccl_collective) return {.program = std::move(whole)};
  if (algorithm == mpi_collective) return split_collectives(whole, job.routing);
  whole = decide_collectives(std::move(whole), job.routing, {.algorithm = algorithm});
  return *expand_within(whole, job.routing, SIZE_MAX);
}

namespace {

std::int64_t count_wrong(const CollectiveJob& job, const std::string& algorithm, Bytes size) {
  const Expanded made = collectives_in_a_row(job, algorithm, size, 1);
  const Program& program = made.program;
  HostMemory memory = job.ranks.memory(program);
  const CollectiveCheck check{
      job.shape.kind, job.shape.group.size(), job.shape.root,
      static_cast<std::size_t>(size.count() / bytes_of(job.numbers).count()), job.numbers};
  const auto for_each_here = [&](auto&& visit) {
    for (std::size_t p = 0; p < job.shape.group.size(); ++p)
      if (const Rank rank = job.shape.group[p]; job.ranks.is_here(rank))
        visit(p, memory.buffer(rank, Buffer{0}), memory.buffer(rank, Buffer{1}));
  };
  for (const Rank rank : job.shape.group)
    for (const Buffer buffer : {Buffer{0}, Buffer{1}})
      memory.cover(rank, {buffer, Bytes{0}, check.room()});
  for_each_here([&](std::size_t p, auto data, auto result) { check.fill(p, data, result); });
  job.ranks.executor(program, memory, {.parts = made.parts})->run(program);
  std::int64_t wrong = 0;
  for_each_here([&](std::size_t p, auto data, auto result) {
    wrong += static_cast<std::int64_t>(check.wrong(p, data, result));
  });
  return job.ranks.sum(wrong);
}

// As many in a row as asked for, but no more than a second's work and a readable program.
std::size_t times_in_a_row(const CollectiveJob& job, Time one, std::size_t transfers) {
  constexpr std::size_t most_transfers = 200'000;
  const double fit = 1.0 / std::max(one.seconds().count(), 1e-9);
  const auto by_time = static_cast<std::size_t>(std::clamp(fit, 2.0, 1e6));
  return std::clamp<std::size_t>(
      std::min(by_time, most_transfers / std::max<std::size_t>(transfers, 1)), 1, job.iterations);
}

// Caches, timers and wake-ups do not matter to what takes this long, and once each is enough: else
// the largest size of a slow network would take minutes.
constexpr Time slow = Time::picoseconds(250'000'000'000);

Time median(std::vector<Time> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

std::vector<std::string> runnable_algorithms(const CollectiveShape& shape, const Topology& topology,
                                             const std::vector<std::string>& wished) {
  std::vector<std::string> names;
  for (const std::string& name : wished) {
    if (const auto refusal = algorithm(name).refusal(shape, topology))
      throw InputError(fmt::format("algorithm '{}' cannot do this: {}", name, *refusal));
    names.push_back(name);
  }
  if (!names.empty()) return names;
  for (const Algorithm& how : algorithms())
    if (!how.refusal(shape, topology)) names.emplace_back(how.name);
  return names;
}

MeasuredCollective measure(const CollectiveJob& job, const std::string& algorithm, Bytes size) {
  const std::int64_t wrong = count_wrong(job, algorithm, size);
  const Expanded single = collectives_in_a_row(job, algorithm, size, 1);
  const Program& once = single.program;
  HostMemory some = job.ranks.memory(once);
  const auto first_run = job.ranks.executor(once, some, {.parts = single.parts});
  // Every process must count alike: the timeline is the same on all of them.
  const Time one = first_run->run(once).makespan;
  const std::size_t times = times_in_a_row(job, one, once.transfer_count());
  std::vector<Time> all;
  if (one > slow) {
    all = {one, first_run->run(once).makespan};
  } else {
    const Expanded many = collectives_in_a_row(job, algorithm, size, times);
    const Program& program = many.program;
    HostMemory memory = job.ranks.memory(program);
    const auto executor = job.ranks.executor(program, memory, {.parts = many.parts});
    executor->run(program);
    for (std::size_t i = 0; i < 2 * job.series; ++i)
      all.push_back(Time::picoseconds(executor->run(program).makespan.ps() /
                                      static_cast<std::int64_t>(times)));
  }
  return summarised(algorithm, size, wrong, all);
}

MeasuredCollective summarised(const std::string& algorithm, Bytes size, std::int64_t wrong,
                              const std::vector<Time>& all) {
  MeasuredCollective measured{.algorithm = algorithm, .size = size, .wrong = wrong};
  std::vector<Time> halves[2];
  for (std::size_t i = 0; i < all.size(); ++i) halves[i % 2].push_back(all[i]);
  measured.first = median(halves[0]);
  measured.second = median(halves[1]);
  const auto [fastest, slowest] = std::minmax_element(all.begin(), all.end());
  measured.spread =
      (*slowest - *fastest).seconds().count() / std::max(median(all).seconds().count(), 1e-12);
  return measured;
}

namespace {

Precision precision_of(const DataType& type) {
  if (type.name == "float") return Precision::fp32;
  if (type.name == "half") return Precision::fp16;
  if (type.name == "bfloat16") return Precision::bf16;
  throw InputError(fmt::format(
      "a real backend adds float, half and bfloat16, not '{}'; choose one with -d", type.name));
}

Topology machine_of(const HostBench& bench, const HostRanks& ranks) {
  if (!bench.cluster.empty()) {
    Topology topology = load_cluster(bench.cluster, {});
    if (bench.calibration.empty()) return topology;
    return apply(load_calibration(bench.calibration), std::move(topology));
  }
  if (!bench.calibration.empty()) throw InputError("--calibration needs --cluster");
  std::size_t count = bench.ranks != 0 ? bench.ranks : ranks.processes();
  if (count == 0) count = std::max(2u, std::thread::hardware_concurrency());
  Topology topology = star(count, {10.0_GBps, 1_us});
  topology.name = "this machine";
  return topology;
}

class HostTable {
 public:
  explicit HostTable(const HostBench& bench)
      : bench_{bench}, topology_{machine_of(bench, ranks_)}, routing_{topology_} {
    for (std::size_t r = 0; r < topology_.rank_count(); ++r)
      shape_.group.push_back(static_cast<Rank>(r));
    shape_.kind = bench.kind;
    shape_.channels = bench.channels;
    shape_.root = bench.root;
    if (bench.root >= shape_.group.size())
      throw InputError(
          fmt::format("--root {} is not one of the {} ranks", bench.root, shape_.group.size()));
    if (ranks_.are_processes() && ranks_.processes() != shape_.group.size())
      throw InputError(fmt::format("mpirun started {} processes, and the machine has {} ranks",
                                   ranks_.processes(), shape_.group.size()));
  }

  void run() {
    const CollectiveJob job{.ranks = ranks_,
                            .routing = routing_,
                            .shape = shape_,
                            .numbers = precision_of(bench_.type),
                            .iterations = bench_.iterations};
    const std::vector<std::string> names = algorithm_names();
    print(table_header(fmt::format("{} on {}: {}, measured; medians of two series, both in place",
                                   bench_.collective, topology_.name, where())));
    Progress progress(bench_.quiet || !ranks_.is_first());
    for (const Bytes size : bench_.sizes) {
      std::vector<MeasuredCollective> tried;
      for (const std::string& name : names) {
        progress.show(fmt::format("{} at {} bytes", name, size.count()));
        tried.push_back(bench_.measure ? bench_.measure(job, name, size)
                                       : measure(job, name, size));
      }
      progress.show("");
      add_row(tried);
      print(table_row(rows_.back(), bench_.kind, bench_.type, shape_.root, shape_.group.size()));
      all_.insert(all_.end(), tried.begin(), tried.end());
    }
    print(table_footer(rows_));
    write();
    fail_if_wrong();
  }

 private:
  std::string where() const {
    return bench_.describe ? bench_.describe(shape_.group.size(), ranks_)
                           : ranks_.describe(shape_.group.size());
  }

  std::vector<std::string> algorithm_names() const {
    if (bench_.library == "nccl") return bench_.algorithms;
    if (bench_.library == "own") return runnable_algorithms(shape_, topology_, bench_.algorithms);
    need_processes(ranks_);
    if (!bench_.algorithms.empty())
      throw InputError("--library mpi chooses by itself: leave --algorithm out");
    return {std::string{mpi_collective}};
  }

  void print(const std::string& text) const {
    if (ranks_.is_first() && bench_.json != "-" && bench_.csv != "-") fmt::print("{}", text);
  }

  void add_row(const std::vector<MeasuredCollective>& tried) {
    const auto& best = *std::min_element(
        tried.begin(), tried.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const double factor = bus_factor(bench_.kind, shape_.group.size());
    const auto rate = [&](Time time) {
      return static_cast<double>(best.size.count()) / std::max(time.seconds().count(), 1e-12) / 1e9;
    };
    BenchRow row{best.size,      best.first,       best.algorithm,
                 bench_.backend, rate(best.first), factor * rate(best.first)};
    row.measured =
        BenchRow::Measured{best.second, rate(best.second), factor * rate(best.second), best.wrong};
    rows_.push_back(row);
  }

  void write() const {
    if (!ranks_.is_first()) return;
    if (!bench_.json.empty()) write_output(bench_.json, json().dump(2) + "\n");
    if (bench_.csv.empty()) return;
    std::string text = "size_bytes,algorithm,time_us,second_time_us,spread,wrong\n";
    for (const MeasuredCollective& m : all_)
      text += fmt::format("{},{},{},{},{},{}\n", m.size.count(), m.algorithm,
                          m.first.seconds().count() * 1e6, m.second.seconds().count() * 1e6,
                          m.spread, m.wrong);
    write_output(bench_.csv, text);
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const MeasuredCollective& m : all_)
      rows.push_back({{"size_bytes", m.size.count()},
                      {"algorithm", m.algorithm},
                      {"time_us", m.first.seconds().count() * 1e6},
                      {"second_time_us", m.second.seconds().count() * 1e6},
                      {"spread", m.spread},
                      {"wrong", m.wrong}});
    return {{"collective", bench_.collective},
            {"cluster", topology_.name},
            {"backend", bench_.backend},
            {"ranks", shape_.group.size()},
            {"where", where()},
            {"datatype", bench_.type.name},
            {"rows", rows}};
  }

  void fail_if_wrong() const {
    std::int64_t wrong = 0;
    for (const MeasuredCollective& m : all_) wrong += m.wrong;
    if (wrong > 0) throw CheckFailed(fmt::format("{} numbers came out wrong", wrong));
  }

  const HostBench& bench_;
  HostRanks ranks_;
  Topology topology_;
  Routing routing_;
  CollectiveShape shape_;
  std::vector<BenchRow> rows_;
  std::vector<MeasuredCollective> all_;
};

}  // namespace

void bench_on_host(const HostBench& bench) { HostTable(bench).run(); }

}  // namespace rehearse
