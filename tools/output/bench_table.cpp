// The columns of nccl-tests 2.13 to 2.17, in their order and widths.
#include "tools/output/bench_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/engine/explain.hpp"
#include "tools/output/chart.hpp"

namespace rehearse {

namespace {

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::reduce;
}

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

std::string figures(Time time, double algbw, double busbw, const std::string& wrong) {
  const double us = time.seconds().count() * 1e6;
  const std::string text = us < 100      ? fmt::format("{:.2f}", us)
                           : us < 10'000 ? fmt::format("{:.1f}", us)
                                         : fmt::format("{:.0f}", us);
  return fmt::format("{:>9} {:>7.2f} {:>7.2f} {:>6}", text, algbw, busbw, wrong);
}

// Sizes of a sweep are powers of two: 128M as nccl-tests says it.
std::string binary_size(Bytes size) {
  constexpr std::string_view units[] = {"", "K", "M", "G", "T"};
  std::int64_t count = size.count();
  std::size_t unit = 0;
  while (count > 0 && count % 1024 == 0 && unit + 1 < std::size(units)) count /= 1024, ++unit;
  return fmt::format("{}{}", count, units[unit]);
}

}  // namespace

DataType data_type(const std::string& name) {
  static const std::vector<std::pair<std::string, int>> types{
      {"int8", 1}, {"uint8", 1}, {"int32", 4},  {"uint32", 4},   {"int64", 8},    {"uint64", 8},
      {"half", 2}, {"float", 4}, {"double", 8}, {"bfloat16", 2}, {"fp8_e4m3", 1}, {"fp8_e5m2", 1}};
  std::vector<std::string> names;
  for (const auto& [known, size] : types) {
    if (known == name) return {name, Bytes{size}};
    names.push_back(known);
  }
  throw InputError(fmt::format("unknown data type '{}'{}", name, did_you_mean(name, names)));
}

double bus_factor(CollectiveKind kind, std::size_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
      break;
  }
  return 1;
}

std::string table_header(const std::string& title) {
  return "# " + title +
         "\n#\n"
         "#                                                              out-of-place"
         "                       in-place          \n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong"
         "     time   algbw   busbw #wrong  algorithm\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       "
         "     (us)  (GB/s)  (GB/s)         /protocol\n";
}

std::string table_row(const BenchRow& row, CollectiveKind kind, const DataType& type,
                      std::uint32_t root, std::size_t ranks) {
  // nccl-tests counts what one rank sends to another.
  const std::size_t parts = kind == CollectiveKind::all_gather ||
                                    kind == CollectiveKind::reduce_scatter ||
                                    kind == CollectiveKind::all_to_all
                                ? ranks
                                : 1;
  const std::string wrong = row.measured ? std::to_string(row.measured->wrong) : "N/A";
  const std::string first = figures(row.time, row.algbw, row.busbw, wrong);
  const std::string second =
      row.measured ? figures(row.measured->time, row.measured->algbw, row.measured->busbw, wrong)
                   : first;
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6} {}{}  {}/{}\n", row.size.count(),
                     row.size.count() / type.size.count() / static_cast<std::int64_t>(parts),
                     type.name, reduces(kind) ? "sum" : "none",
                     has_root(kind) ? static_cast<std::int64_t>(root) : -1, first, second,
                     row.algorithm, row.protocol);
}

std::string table_footer(const std::vector<BenchRow>& rows) {
  double sum = 0;
  std::int64_t wrong = 0;
  for (const BenchRow& row : rows) {
    sum += row.busbw;
    if (row.measured) wrong += row.measured->wrong;
  }
  const double average = rows.empty() ? 0 : sum / static_cast<double>(rows.size());
  return fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:.6g}\n#\n", wrong,
                     wrong == 0 ? "OK" : "FAILED", average);
}

std::string chart(const std::vector<BenchRow>& rows) {
  constexpr std::size_t width = 40;
  double highest = 0;
  for (const BenchRow& row : rows) highest = std::max(highest, row.busbw);
  std::string text = "#  size       bus bandwidth (GB/s)\n";
  for (const BenchRow& row : rows)
    text += fmt::format("# {:>9} {:>8.2f} {} {}\n", binary_size(row.size), row.busbw,
                        bar(highest > 0 ? row.busbw / highest : 0, width), row.algorithm);
  return text;
}

std::string explanation(CollectiveChooser& chooser, Bytes size,
                        const std::vector<Candidate>& candidates, Executor& engine,
                        const Topology& topology) {
  const std::vector<Candidate> empty = chooser.at(Bytes{0}, engine);
  const CollectiveBound bound = chooser.bound(size);
  std::string text = fmt::format(
      "# {}: no algorithm can take less than {} ({}); time = latency (with no bytes) + the rest\n",
      binary_size(size), readable(bound.least()),
      bound.latency > bound.bandwidth ? "latency" : bound.limiting);
  for (const Candidate& candidate : candidates) {
    const auto without = std::find_if(empty.begin(), empty.end(), [&](const Candidate& other) {
      return other.algorithm == candidate.algorithm && other.protocol == candidate.protocol;
    });
    const Time latency = without == empty.end() ? Time{} : without->result.time;
    const CollectiveResult& result = candidate.result;
    const BusiestLink busiest = chooser.busiest(candidate, size);
    text += fmt::format(
        "#   {:<38} {:>10} = {:>10} + {:>10}   {}\n",
        fmt::format("{}/{}", candidate.algorithm, chooser.protocol_name(candidate.protocol)),
        readable(result.time), readable(latency),
        readable(result.time - std::min(latency, result.time)),
        busiest.link == no_link
            ? std::string("no link is used")
            : fmt::format("{} is full {:.0f} % of the time", link_name(topology, busiest.link),
                          busiest.load * 100));
  }
  return text;
}

}  // namespace rehearse
