// A training stopped and resumed, and run by threads and by processes: the same bits. A checkpoint
// holds every bit that outlasts a step, so two files are compared.
#include "tests/support/host_machine.hpp"
#include "tests/support/own_folder.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::training_test {
namespace {

constexpr const char* llama = R"(schema = 1
[model]
model_type = "llama"
hidden_size = 32
num_hidden_layers = 2
num_attention_heads = 4
num_key_value_heads = 2
intermediate_size = 48
vocab_size = 61
max_position_embeddings = 16
tie_word_embeddings = false
[cluster]
name = "machine.toml"
[training]
seq_length = 16
micro_batch_size = 1
global_batch_size = 8
dtype = "fp32"
)";

constexpr const char* mlp = R"(schema = 1
[model]
model_type = "mlp"
layer_sizes = [24, 32, 10]
[cluster]
name = "machine.toml"
[training]
micro_batch_size = 4
global_batch_size = 32
dtype = "fp32"
optimizer = "momentum"
)";

class HostTrainings : public OwnFolder {
 protected:
  HostTrainings() {
    write("machine.toml", host_machine(4));
    write("llama.toml", llama);
    write("mlp.toml", mlp);
  }

  Outcome run(const std::string& words) const {
    return shell("cd " + folder().string() + " && $R run " + words + " --backend host --quiet");
  }
  void expect_run(const std::string& words) const {
    const Outcome done = run(words);
    EXPECT_EQ(done.exit_code, 0) << words << "\n" << done.text;
  }
  static bool has_mpirun() { return shell("command -v mpirun >/dev/null").exit_code == 0; }
};

TEST_F(HostTrainings, GoOnWithTheSameBits) {
  expect_run("mlp.toml --steps 20 --checkpoint whole --json whole.json");
  expect_run("mlp.toml --steps 10 --checkpoint half");
  expect_run("mlp.toml --steps 10 --resume half --checkpoint rest --json rest.json");
  ASSERT_FALSE(read("whole").empty());
  EXPECT_TRUE(read("whole") == read("rest"));
  EXPECT_FALSE(read("half") == read("rest"));
  const auto steps = [&](const std::string& name) { return read_json(name)["steps"]; };
  const nlohmann::json all = steps("whole.json"), last = steps("rest.json");
  ASSERT_EQ(last.size(), 10u);
  for (std::size_t i = 0; i < last.size(); ++i) {
    EXPECT_EQ(last[i]["number"], 11 + i);
    EXPECT_EQ(last[i]["loss"], all[10 + i]["loss"]);
  }
  EXPECT_LT(all[19]["loss"], all[0]["loss"]);
}

// From a scale that overflows: told step by step, and carried by the checkpoint.
TEST_F(HostTrainings, ScaleTheirLossInFp16) {
  const std::string fp16 =
      "mlp.toml --set dtype=fp16 --set loss_scaling=dynamic --set loss_scale_window=3 "
      "--set initial_loss_scale=8388608 --set pp=2 --set lr=0.04 --set data_seed=5 ";
  expect_run(fp16 + "--steps 12 --checkpoint whole --json whole.json");
  expect_run(fp16 + "--steps 4 --checkpoint half");
  const Outcome told = run(fp16 + "--steps 8 --resume half --checkpoint rest");
  EXPECT_EQ(told.exit_code, 0) << told.text;
  EXPECT_NE(told.text.find("  scale "), std::string::npos) << told.text;
  ASSERT_FALSE(read("whole").empty());
  EXPECT_TRUE(read("whole") == read("rest"));
  const auto all = read_json("whole.json");
  EXPECT_EQ(all["learning_rate"], 0.04);
  EXPECT_EQ(all["seed"], 5);
  const nlohmann::json& steps = all["steps"];
  ASSERT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps[0]["skipped"], true);
  double scale = 8388608;
  int good = 0;
  for (const nlohmann::json& step : steps) {
    EXPECT_EQ(step["loss_scale"], scale) << step;
    good = step["skipped"] ? 0 : good + 1;
    scale *= step["skipped"] ? 0.5 : good == 3 ? 2 : 1;
    good %= 3;
  }
  EXPECT_EQ(
      std::count_if(steps.begin(), steps.end(), [](auto& step) { return step["skipped"]; }) < 9,
      true);
}

TEST_F(HostTrainings, AreTheSameWithThreadsAndProcesses) {
  if (!has_mpirun()) GTEST_SKIP() << "there is no mpirun";
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "Open MPI leaks, which is not ours to mend";
#endif
  for (const std::string words :
       {"mlp.toml --set compression.method=dgc --set compression.sparsity=0.9",
        "mlp.toml --set local_sgd.interval=2",
        "mlp.toml --set dtype=fp16 --set loss_scaling=dynamic --set initial_loss_scale=8388608 "
        "--set pp=2 --set zero_stage=1",
        "mlp.toml --set compression.method=int8",
        "llama.toml --set tp=2 --set pp=2 --set sequence_parallel=true "
        "--set recompute_granularity=full",
        "llama.toml --set zero_stage=3 --set overlap_param_gather=true "
        "--set overlap_grad_reduce=true"}) {
    expect_run(words + " --steps 3 --checkpoint threads");
    expect_run(words + " --steps 2 --processes 4 --checkpoint first");
    expect_run(words + " --steps 1 --processes 4 --resume first --checkpoint processes");
    EXPECT_FALSE(read("threads").empty()) << words;
    EXPECT_TRUE(read("threads") == read("processes")) << words;
  }
}

// Sums in another order: the same losses up to rounding, on groups of all ranks and of some.
TEST_F(HostTrainings, AreNearWithTheCollectivesOfMpi) {
  if (!has_mpirun()) GTEST_SKIP() << "there is no mpirun";
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "Open MPI leaks, which is not ours to mend";
#endif
  const auto losses = [&](const std::string& name) {
    std::vector<double> list;
    const nlohmann::json told = read_json(name);
    for (const auto& step : told["steps"]) list.push_back(step["loss"]);
    return list;
  };
  expect_run("llama.toml --set tp=2 --steps 5 --processes 4 --json own");
  expect_run("llama.toml --set tp=2 --steps 5 --processes 4 --library mpi --json mpi");
  const std::vector<double> own = losses("own"), mpi = losses("mpi");
  ASSERT_EQ(own.size(), 5u);
  ASSERT_EQ(mpi.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(mpi[i], own[i], 1e-5 * own[i]);
  EXPECT_NE(read("mpi").find("collectives of MPI"), std::string::npos);
}

TEST_F(HostTrainings, RefuseWhatIsNotTheirs) {
  expect_run("mlp.toml --steps 1 --checkpoint mlp");
  for (const std::string words :
       {"llama.toml --resume mlp", "mlp.toml --resume nothing", "mlp.toml --resume machine.toml",
        "mlp.toml --set optimizer=sgd --resume mlp", "mlp.toml --compute paced --checkpoint other",
        "mlp.toml --checkpoint -", "mlp.toml --checkpoint other --checkpoint-every 0",
        "mlp.toml --processes 0", "mlp.toml --learning-rate 0", "mlp.toml --learning-rate nan",
        "mlp.toml --seed -1", "mlp.toml --learning-rate 0.2 --resume mlp", "mlp.toml --library mpi",
        "mlp.toml --library nccl", "mlp.toml --library own2"}) {
    const Outcome done = run(words + " --steps 1");
    EXPECT_EQ(done.exit_code, 2) << words << "\n" << done.text;
    EXPECT_EQ(std::count(done.text.begin(), done.text.end(), '\n'), 1) << words << done.text;
  }
  EXPECT_FALSE(std::filesystem::exists(path("other")));
}

}  // namespace
}  // namespace rehearse::training_test
