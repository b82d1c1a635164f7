// Reading tables of measurements: quotes, formats by their columns, and every mistake at its line.
#include "tools/accuracy/measured_rows.hpp"

#include <gtest/gtest.h>

#include "sim/base/error.hpp"
#include "tools/accuracy/measured_csv.hpp"

namespace rehearse::measured_rows_test {
namespace {

constexpr const char* header =
    "case_id,gpu,nodes,gpus_per_node,nics_per_node,nic_gbps,fabric,intra,library_version,"
    "collective,algorithm,protocol,size_bytes,time_us,noisy,source,launch\n";

std::string problems_of(const std::string& text) {
  try {
    parse_measured(text, "m.csv");
  } catch (const InputError& error) {
    std::string all;
    for (const Problem& problem : error.problems()) all += to_string(problem) + "\n";
    return all;
  }
  return "no problem";
}

TEST(MeasuredCsv, ReadsQuotesAndKnowsItsLines) {
  const CsvTable table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n\r\n\"x, \"\"y\"\"\",2\n\"two\nlines\",\nlast,\"\"",
      "m.csv");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].cells, (std::vector<std::string>{"x, \"y\"", "2"}));
  EXPECT_EQ(table.rows[0].line, 3u);
  EXPECT_EQ(table.rows[1].cells, (std::vector<std::string>{"two\nlines", ""}));
  EXPECT_EQ(table.rows[2].cells, (std::vector<std::string>{"last", ""}));
  EXPECT_EQ(table.rows[2].line, 6u);
}

TEST(MeasuredCsv, TellsAllMistakesAtOnce) {
  EXPECT_EQ(problems_of(""), "m.csv: error: is empty: it needs a header line and rows\n");
  EXPECT_EQ(
      problems_of("a,b,a\n1,2\nx\"y,2,3\n\"z\"z,2,3\n\"open,1,2\n"),
      "m.csv:1:5: error: column 'a' is there twice\n"
      "m.csv:2:1: error: 2 cells, but the header has 3 columns\n"
      "m.csv:3:1: error: a quote inside a cell: put the whole cell in quotes and double it\n"
      "m.csv:4:4: error: text after a closing quote: double a quote that belongs to the cell\n"
      "m.csv:5:1: error: a quote is opened here and never closed\n"
      "m.csv:5:1: error: 1 cells, but the header has 3 columns\n");
}

TEST(MeasuredRows, ReadsACollective) {
  const MeasuredFile file = parse_measured(
      std::string(header) +
          "x,h100-sxm-80gb,2,8,8,400,roce,nvswitch,nccl-2.23.4,all_reduce,auto,ll,4096,12.5,1,"
          "\"a \"\"b\"\", c\",unknown\n",
      "m.csv");
  EXPECT_EQ(file.format, "collectives");
  ASSERT_EQ(file.rows.size(), 1u);
  EXPECT_EQ(file.rows[0].source, "a \"b\", c");
  EXPECT_EQ(file.rows[0].sweep, "h100-sxm-80gb 2x8 roce all_reduce auto");
  const auto& row = std::get<CollectiveMeasured>(file.rows[0].what);
  EXPECT_EQ(row.hardware.nodes, 2u);
  EXPECT_EQ(row.hardware.nic_gbps, 400);
  EXPECT_EQ(row.size_bytes, 4096);
  EXPECT_EQ(row.time_us, 12.5);
  EXPECT_TRUE(row.noisy);
}

TEST(MeasuredCsv, IsNoText) {
  EXPECT_EQ(problems_of("# A title\n\nOne, two, three.\n"),
            "m.csv:1:1: error: its first line names no columns; a table has several, with commas "
            "between\n");
}

TEST(MeasuredRows, TellsEachMistakeAtItsLine) {
  EXPECT_EQ(problems_of("case_id,gpu\nx,y\n").substr(0, 62),
            "m.csv:1:1: error: its columns are of no known format; one has ");
  EXPECT_EQ(problems_of("case_id,kind,gbps\n").substr(0, 67),
            "m.csv:1:1: error: column 'gpu' is missing; a kernels file needs it\n");
  EXPECT_EQ(
      problems_of(std::string(header) +
                  ",h100,2,8,8,400,roce,nvswitch,,all_reduce,auto,ll,4096,12.5,0,,\n"
                  "y,h100,0,8,8,-1,roce,nvswitch,,all_reduc,auto,ll,4k,nan,2,,\n"),
      "m.csv:2:1: error: case_id: is empty\n"
      "m.csv:3:14: error: nic_gbps: '-1' must be a number, 0 or more\n"
      "m.csv:3:8: error: nodes: '0' must be a whole number from 1 to 1048576\n"
      "m.csv:3:32: error: collective: 'all_reduc' is none of all_reduce, all_gather, "
      "reduce_scatter, all_to_all, broadcast, reduce, send_recv; did you mean "
      "'all_reduce'?\n"
      "m.csv:3:50: error: size_bytes: '4k' must be a whole number from 1 to 1125899906842624\n"
      "m.csv:3:53: error: time_us: 'nan' must be a number above 0\n"
      "m.csv:3:57: error: noisy: '2' is none of unknown, 0, 1; did you mean '0'?\n");
}

}  // namespace
}  // namespace rehearse::measured_rows_test
