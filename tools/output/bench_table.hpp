// nccl-tests' table, and what we add to it: which algorithm, a chart, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "strategies/collectives/choose.hpp"

namespace rehearse {

struct BenchRow {
  Bytes size;
  Time time;
  std::string algorithm, protocol;
  double algbw = 0, busbw = 0;  // GB/s
  /// The second group of columns, and what was found wrong; a simulated row has neither.
  struct Measured {
    Time time;
    double algbw = 0, busbw = 0;
    std::int64_t wrong = 0;
  };
  std::optional<Measured> measured{};
};

struct DataType {
  std::string name = "float";
  Bytes size{4};
};

/// "float", "half", "bfloat16", "int32", … as nccl-tests spells them; throws InputError.
DataType data_type(const std::string& name);

/// Bus bandwidth over algorithm bandwidth: 2(n-1)/n for all-reduce and so on (scenarios/README.md).
double bus_factor(CollectiveKind kind, std::size_t ranks);

std::string table_header(const std::string& title);
std::string table_row(const BenchRow& row, CollectiveKind kind, const DataType& type,
                      std::uint32_t root, std::size_t ranks);
std::string table_footer(const std::vector<BenchRow>& rows);

/// Bus bandwidth over size, one bar a row, as comment lines.
std::string chart(const std::vector<BenchRow>& rows);

/// Why this candidate and not another, at one size.
std::string explanation(CollectiveChooser& chooser, Bytes size,
                        const std::vector<Candidate>& candidates, Executor& engine,
                        const Topology& topology);

}  // namespace rehearse
