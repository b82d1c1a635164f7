// The trace is valid JSON, its slices equal the timeline and do not overlap, and its words are
// those that trace tools look for.
#include "tools/output/trace_writer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "tests/support/random_program.hpp"
#include "tools/output/kernel_names.hpp"
#include "topology/generators.hpp"

namespace rehearse::trace_test {
namespace {

struct Traced {
  std::string text;
  nlohmann::json json;
};

Traced trace_of(const Program& program, const Timeline& timeline, Routing& routing,
                const TraceOptions& options = {}) {
  std::string pattern = (std::filesystem::temp_directory_path() / "rehearse-trace-XXXXXX").string();
  const int descriptor = mkstemp(pattern.data());
  EXPECT_GE(descriptor, 0);
  close(descriptor);
  OutputFile out{pattern};
  write_trace(out, program, timeline, Paths(program, routing), routing.topology(), options);
  out.finish();
  std::ifstream stream{pattern};
  std::ostringstream text;
  text << stream.rdbuf();
  std::filesystem::remove(pattern);
  return {text.str(), nlohmann::json::parse(text.str())};
}

// Two ranks: compute, then a shared link's worth of sends both ways, one of them across lanes.
struct Example {
  Topology topology = star(3, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  Program program;
  Timeline timeline;

  Example() {
    Compute work;
    work.fixed = Time::picoseconds(1'234'567);
    const Label gemm{program.name("gemm \"big\""), 3};
    const Label ring{program.name("ring_all_reduce"), 0};
    const OpId first = program.add_compute(Rank{0}, Stream::compute, gemm, work, {});
    for (const Rank source : {Rank{0}, Rank{1}}) {
      Transfer transfer;
      transfer.connection = program.connect({.source = source, .target = Rank{2}, .others = {}});
      transfer.size = transfer.wire = Bytes{1'000'000};
      program.add_transfer(Stream::comm, ring, transfer, std::vector<OpId>{first});
    }
    program.add_marker(Rank{2}, Stream::compute, {program.name("done"), Label::no_number},
                       std::vector<OpId>{OpId{1}});
    const Roofline cost;
    timeline = FastSimulator(routing, cost).run(program);
  }
};

TEST(Trace, HasKinetosLayout) {
  Example example;
  const Traced trace = trace_of(example.program, example.timeline, example.routing);
  EXPECT_NE(trace.text.find("\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, "
                            "\"world_size\": 3}"),
            std::string::npos);
  EXPECT_NE(trace.text.find("\"ts\": 0.000, \"dur\": 1.234567"), std::string::npos);
  std::map<std::string, int> by_phase;
  std::vector<nlohmann::json> kernels;
  for (const nlohmann::json& event : trace.json["traceEvents"]) {
    ++by_phase[event["ph"]];
    if (event["ph"] == "X") kernels.push_back(event);
  }
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0]["name"], "gemm \"big\" 3");
  EXPECT_EQ(kernels[1]["name"], "ncclDevKernel_AllReduce_RING");
  EXPECT_EQ(kernels[1]["cat"], "kernel");
  EXPECT_EQ(kernels[1]["pid"], 0);
  EXPECT_EQ(kernels[1]["tid"], 2);
  const nlohmann::json& args = kernels[2]["args"];
  EXPECT_EQ(args["stream"], 2);
  EXPECT_EQ(args["device"], 1);
  EXPECT_EQ(args["correlation"], 2);
  EXPECT_EQ(args["Collective name"], "allreduce");
  EXPECT_EQ(args["In msg nelems"], 250'000);
  EXPECT_EQ(args["waited for"], "input");
  EXPECT_EQ(args["held by"], "switch0 -> gpu2") << args.dump();
  EXPECT_EQ(by_phase["i"], 1);
  EXPECT_EQ(by_phase["s"], 2);  // compute of rank 0 to rank 1, and the send of rank 0 to rank 2
  EXPECT_EQ(by_phase["f"], 2);
}

TEST(Trace, CountersCarryEveryByteAndComeBackToZero) {
  Example example;
  const Traced trace = trace_of(example.program, example.timeline, example.routing);
  std::map<std::string, std::vector<std::pair<double, double>>> counters;
  for (const nlohmann::json& event : trace.json["traceEvents"])
    if (event["ph"] == "C")
      counters[event["name"]].emplace_back(event["ts"], event["args"]["GB/s"]);
  ASSERT_EQ(counters.size(), 3u);
  double bytes = 0;
  for (const auto& [name, steps] : counters) {
    EXPECT_EQ(steps.back().second, 0) << name;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      EXPECT_LE(steps[i].second, 10.001) << name;
      bytes += steps[i].second * 1e3 * (steps[i + 1].first - steps[i].first);
    }
  }
  EXPECT_NEAR(bytes, 4'000'000, 100);  // two sends over two links each
}

// Two sends of 100 us of bytes and 2 us of latency, and a marker where the second arrives.
TEST(Trace, APostedSendEndsWhenItsStreamIsFree) {
  const Topology topology = star(2, {BytesPerSecond{1e10}, 1_us});
  Routing routing{topology};
  Program program;
  const ConnectionId way =
      program.connect({.source = Rank{0}, .target = Rank{1}, .posted = true, .others = {}});
  OpId last{};
  for (std::uint32_t i = 0; i < 2; ++i)
    last = program.add_transfer(
        Stream::comm, {program.name("send"), i},
        {.connection = way, .size = Bytes{1'000'000}, .wire = Bytes{1'000'000}}, {});
  program.add_marker(Rank{1}, Stream::compute, {program.name("done")}, std::vector{last});
  const Timeline timeline = FastSimulator(routing, Roofline{}).run(program);
  const Traced trace = trace_of(program, timeline, routing);
  std::map<std::string, std::vector<double>> times;  // by phase
  std::vector<double> rates;
  for (const nlohmann::json& event : trace.json["traceEvents"]) {
    if (event["ph"] == "M") continue;
    times[event["ph"]].push_back(event["ts"]);
    if (event["ph"] == "C") rates.push_back(event["args"]["GB/s"]);
    if (event["ph"] != "X") continue;
    EXPECT_EQ(event["dur"], 100);
    EXPECT_EQ(event["args"]["then in flight (us)"], 2);
  }
  EXPECT_EQ(times["X"], (std::vector<double>{0, 100}));
  EXPECT_EQ(times["s"], (std::vector<double>{199.999})) << "inside the slice that it leaves";
  EXPECT_EQ(times["f"], (std::vector<double>{202}));
  EXPECT_EQ(times["i"], (std::vector<double>{202}));
  EXPECT_EQ(times["C"], (std::vector<double>{0, 200, 0, 200})) << "two links, full all the time";
  EXPECT_EQ(rates, (std::vector<double>{10, 0, 10, 0}));
}

TEST(Trace, ShowsOnlyTheRanksAskedFor) {
  Example example;
  TraceOptions options;
  options.ranks = {Rank{1}};
  const Traced trace = trace_of(example.program, example.timeline, example.routing, options);
  EXPECT_NE(trace.text.find("\"rank\": 1, "), std::string::npos);
  for (const nlohmann::json& event : trace.json["traceEvents"]) {
    EXPECT_NE(event["ph"], "s");
    EXPECT_TRUE(event["pid"] == 1 || event["pid"] == 3) << event.dump();  // 3: the links
  }
}

TEST(Trace, SlicesOfRandomProgramsEqualTheTimelineAndDoNotOverlap) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Draw draw{seed};
    const Topology topology = random_topology(draw);
    const Program program = random_program(draw, topology);
    Routing routing{topology};
    const Roofline cost;
    const Timeline timeline = FastSimulator(routing, cost).run(program);
    const Paths paths{program, routing};
    const Traced trace = trace_of(program, timeline, routing);
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;  // by track
    for (const nlohmann::json& event : trace.json["traceEvents"]) {
      if (event["ph"] != "X") continue;
      const std::size_t op = event["args"]["correlation"];
      const double begin = event["ts"], duration = event["dur"];
      const Timeline::Span& span = timeline.spans[op];
      ASSERT_NEAR(begin, span.begin.seconds().count() * 1e6, 1e-7);
      const Time left = span.end - flight_of(program, paths, program[static_cast<OpId>(op)]);
      ASSERT_NEAR(duration, (left - span.begin).seconds().count() * 1e6, 1e-7);
      slices[{event["pid"], event["tid"]}].emplace_back(begin, begin + duration);
    }
    for (auto& [track, all] : slices) {  // those of a queue are not in the order of the program
      std::sort(all.begin(), all.end());
      for (std::size_t i = 1; i < all.size(); ++i)
        ASSERT_GE(all[i].first, all[i - 1].second - 1e-7) << "seed " << seed;
    }
  }
}

TEST(Trace, KernelNamesAreNccls) {
  EXPECT_EQ(kernel_name("ring_all_reduce").kernel, "ncclDevKernel_AllReduce_RING");
  EXPECT_EQ(kernel_name("double_binary_tree reduce_scatter").kernel,
            "ncclDevKernel_ReduceScatter_DOUBLE_BINARY_TREE");
  EXPECT_EQ(kernel_name("reduce").kernel, "ncclDevKernel_Reduce");
  EXPECT_EQ(kernel_name("0F3").kernel, "ncclDevKernel_SendRecv_0F3");
  EXPECT_EQ(kernel_name("all_to_all").collective, "all_to_all");
}

TEST(Trace, RanksAreReadAsRanges) {
  EXPECT_EQ(parse_ranks("3,0-1,1", 8), (std::vector<Rank>{Rank{0}, Rank{1}, Rank{3}}));
  for (const std::string_view wrong : {"", "8", "1-", "-1", "3-1", "0,,1", "a", "0-99999999999999"})
    EXPECT_THROW(parse_ranks(wrong, 8), InputError) << wrong;
}

}  // namespace
}  // namespace rehearse::trace_test
