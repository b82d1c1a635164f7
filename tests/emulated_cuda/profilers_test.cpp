// What profilers see: ranges of NVTX with the names that our own traces have, read by a listener
// that NVTX loads as it loads Nsight; and times by CUPTI's records, from a library in CUPTI's
// place.
#include <set>
#include <sstream>

#include "kernels/cuda/cuda_executor.hpp"
#include "sim/base/error.hpp"
#include "tests/emulated_cuda/machine.hpp"
#include "tests/equivalence/lossless_rows.hpp"
#include "tests/support/own_folder.hpp"
#include "tests/support/shell.hpp"
#include "tools/measure/cuda_places.hpp"

namespace rehearse::profilers_test {
namespace {

constexpr const char* scenario = R"(schema = 1
[model]
model_type = "mlp"
layer_sizes = [24, 32, 10]
[cluster]
name = "dgx-a100"
gpus_per_node = 2
[training]
micro_batch_size = 4
dtype = "fp32"
optimizer = "sgd"
)";

class Profilers : public OwnFolder {
 protected:
  Profilers() { write("scenario.toml", scenario); }
  std::string run() const {
    return "REHEARSE_EMULATED='devices=2' " REHEARSE_EMULATED_BINARY " run " +
           path("scenario.toml") + " --backend cuda --steps 2 --trace " + path("trace.json") + " ";
  }
  std::vector<nlohmann::json> slices() const {
    const nlohmann::json all = read_json("trace.json");
    std::vector<nlohmann::json> found;
    for (const auto& event : all["traceEvents"])
      if (event["ph"] == "X") found.push_back(event);
    return found;
  }
};

#ifdef REHEARSE_NVTX_LISTENER
TEST_F(Profilers, NvtxHasTheWordsOfTheTrace) {
  const Outcome done =
      shell("NVTX_INJECTION64_PATH=" REHEARSE_NVTX_LISTENER " REHEARSE_NVTX_LOG=" + path("nvtx") +
            " " + run() + "--library nccl");
  ASSERT_EQ(done.exit_code, 0) << done.text;
  std::multiset<std::string> ranges, traced;
  std::set<std::string> streams;
  std::string end;
  std::ifstream log(path("nvtx"));
  for (std::string line; std::getline(log, line);) {
    std::istringstream words(line);
    std::string what, number, name;
    words >> what;
    if (what == "range") words >> number >> name, ranges.insert(name);
    if (what == "stream") streams.insert(line.substr(7));
    if (what == "end") words >> end;
  }
  for (const nlohmann::json& slice : slices()) {
    const std::string name = slice["name"];
    // In traces, communication is known to their readers by this.
    traced.insert(name.starts_with("nccl:") ? name.substr(5) : name);
  }
  EXPECT_EQ(std::set(ranges.begin(), ranges.end()), std::set(traced.begin(), traced.end()));
  // Two steps and one to warm up; a collective is one range and a slice of each rank.
  EXPECT_EQ(ranges.size() % 3, 0U);
  EXPECT_GE(ranges.size(), traced.size());
  EXPECT_EQ(streams, (std::set<std::string>{"rank 0 compute", "rank 0 comm 1", "rank 1 compute",
                                            "rank 1 comm 1"}));
  EXPECT_EQ(end, "0");  // every range that was opened was closed
}
#endif

TEST_F(Profilers, WithoutOneNothingIsLoaded) {
  const Outcome done = shell("NVTX_INJECTION64_PATH=" + path("nothing") + " " + run());
  EXPECT_EQ(done.exit_code, 0) << done.text;
}

#ifdef REHEARSE_FAKE_CUPTI
TEST_F(Profilers, CuptisTimes) {
  const std::string library = std::filesystem::path(REHEARSE_FAKE_CUPTI).parent_path().string();
  const Outcome done = shell("LD_LIBRARY_PATH=" + library + " " + run() + "--cupti");
  ASSERT_EQ(done.exit_code, 0) << done.text;
  std::size_t lasting = 0;
  for (const nlohmann::json& slice : slices()) {
    EXPECT_LT(slice["ts"].get<double>(), 1e9) << slice;  // since the begin of the step, not 1970
    lasting += slice["dur"].get<double>() > 0 ? 1 : 0;
  }
  EXPECT_GT(lasting, 10U);
}

TEST_F(Profilers, ALibraryThatIsNotThereIsOneLine) {
  const Outcome done =
      shell("LD_LIBRARY_PATH=" + path("") + " CUDA_VISIBLE_DEVICES= " + run() + "--cupti");
  if (done.exit_code == 0) GTEST_SKIP() << "CUPTI's own library is here";
  EXPECT_EQ(done.exit_code, 3) << done.text;
  EXPECT_EQ(std::ranges::count(done.text, '\n'), 1) << done.text;
}

// The same work in the same order, told by events and by records: what a record tells lies within
// what the events around the op tell, and edges hold.
TEST(CuptiRecords, LieWithinTheirEvents) {
  for (const Row& row : rows()) {
    if (row.name != "mlp_pp2_tp2" && row.name != "mlp_zero3_overlap") continue;
    SCOPED_TRACE(row.name);
    const SmallTraining training = training_of(row);
    const BoundStep step = bound_step(training);
    const Program& program = step.program();
    const auto times = [&](const std::string& library) {
      emulated_cuda::reset({.devices = 4, .memory = 4 << 20, .seed = 7});
      std::vector<Timeline> all;
      const CudaMemory memory{program, {0, 1, 2, 3}, places_of(step)};
      CudaExecutor executor{memory, {.cupti = library}};
      for (int i = 0; i < 3; ++i) all.push_back(executor.run(program));
      return all;
    };
    const std::vector<Timeline> events = times(""), records = times(REHEARSE_FAKE_CUPTI);
    for (std::size_t r = 0; r < events.size(); ++r) {
      std::size_t lasting = 0;
      for (std::size_t i = 0; i < program.size(); ++i) {
        const Timeline::Span &outer = events[r].spans[i], &inner = records[r].spans[i];
        // The events of a collective are its first rank's; its records are everybody's.
        if (program.ops()[i].kind != WorkKind::collective) {
          ASSERT_LE(inner.end - inner.begin, outer.end - outer.begin) << i;
        }
        const bool computes =
            program.ops()[i].kind == WorkKind::compute && !program.calls(program.ops()[i]).empty();
        if (computes) {
          ASSERT_GT(inner.end, inner.begin) << i;
        }
        lasting += inner.end > inner.begin ? 1 : 0;
        for (const OpId input : program.after(static_cast<OpId>(i)))
          ASSERT_LE(records[r].spans[index(input)].end, inner.begin) << i;
      }
      EXPECT_GT(lasting, program.size() / 2);
    }
  }
  EXPECT_EQ(emulated_cuda::leaks(), "");
}

TEST(CuptiRecords, AnotherLibraryIsRefused) {
  emulated_cuda::reset({});
  Program program;
  program.add_marker(Rank{0}, Stream::compute, {program.name("nothing")}, {});
  const CudaMemory memory{program, {0}};
  EXPECT_THROW((CudaExecutor{memory, {.cupti = "libm.so.6"}}.run(program)), DeviceError);
  // Nothing was started, and so nothing is told of.
  EXPECT_THROW((CudaExecutor{memory, {.cupti = REHEARSE_FAKE_CUPTI}}.run(program)), DeviceError);
}
#endif

}  // namespace
}  // namespace rehearse::profilers_test
