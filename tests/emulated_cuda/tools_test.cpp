// `run` and `calibrate --backend cuda` as scripts see them, in the program that is linked with
// emulated GPUs: losses as on the host, a profile that predict takes, and faults as one line with
// exit code 3 and nothing left behind (that would be exit code 99).
#include <algorithm>
#include <sstream>

#include "tests/support/own_folder.hpp"
#include "tests/support/places.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::tools_test {
namespace {

constexpr const char* scenario = R"(schema = 1
title = "Two ranks"
[model]
model_type = "mlp"
layer_sizes = [24, 32, 10]
[cluster]
name = "machine.toml"
[training]
micro_batch_size = 4
dtype = "fp32"
optimizer = "sgd"
)";

constexpr const char* machine = R"(schema = 1
name = "two GPUs"
[accelerator]
name = "a GPU"
memory = "8GB"
memory_bandwidth = "10GB/s"
[accelerator.peak]
fp32 = "50GFLOPS"
tf32 = "50GFLOPS"
fp16 = "50GFLOPS"
bf16 = "50GFLOPS"
[node]
kind = "fully_connected"
gpus = 2
bandwidth = "4GB/s"
latency = "2us"
)";

class CudaCommands : public OwnFolder {
 protected:
  CudaCommands() {
    write("scenario.toml", scenario);
    write("machine.toml", machine);
  }
  std::vector<double> losses(const std::string& backend, const std::string& how = " --steps 3",
                             const std::string& environment = "") const {
    const Outcome done = shell(environment + "REHEARSE_EMULATED='devices=2' " + program(backend) +
                               " run " + path("scenario.toml") + " --backend " + backend + how +
                               " --json " + path("out.json"));
    EXPECT_EQ(done.exit_code, 0) << done.text;
    const nlohmann::json told = read_json("out.json");
    EXPECT_EQ(told["backend"], backend);
    std::vector<double> found;
    for (const auto& step : told["steps"]) found.push_back(step["loss"]);
    return found;
  }
  static std::string program(const std::string& backend) {
    return backend == "cuda" ? REHEARSE_EMULATED_BINARY : "$R";
  }
  void expect_fault(const std::string& machine_words, const std::string& library,
                    const std::string& words, const std::string& environment = "") const {
    const Outcome done =
        shell(environment + "REHEARSE_EMULATED='" + machine_words +
              "' timeout 60 " REHEARSE_EMULATED_BINARY " run " + path("scenario.toml") +
              " --steps 1 --backend cuda --library " + library);
    EXPECT_EQ(done.exit_code, 3) << machine_words << "\n" << done.text;
    EXPECT_NE(done.text.find(words), std::string::npos) << done.text;
    // The machine itself tells of a kernel that it lets fail, and the address sanitizer of fibers.
    std::istringstream lines(done.text);
    std::size_t told = 0;
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("emulated CUDA: ") && !line.starts_with("==")) ++told;
    EXPECT_EQ(told, 1u) << done.text;
  }
};

TEST_F(CudaCommands, RunHasTheLossesOfTheHost) {
  const std::vector<double> wanted = losses("host");
  ASSERT_EQ(wanted.size(), 3u);
  for (const std::string how : {"", " --library nccl", " --library nccl --algorithm Tree",
                                " --graph", " --graph --library nccl"}) {
    const std::vector<double> got = losses("cuda", " --steps 3" + how);
    ASSERT_EQ(got.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5 * wanted[i]) << how;
  }
}

// The same masks as on the host.
TEST_F(CudaCommands, RunWithDropout) {
  std::string text = scenario;
  const std::string mlp = "model_type = \"mlp\"\nlayer_sizes = [24, 32, 10]\n";
  text.replace(text.find(mlp), mlp.size(),
               "model_type = \"gpt2\"\nn_embd = 16\nn_layer = 1\nn_head = 2\n"
               "vocab_size = 32\nn_positions = 8\n");
  write("scenario.toml", text + "seq_length = 8\ndropout = 0.2\n");
  const std::vector<double> wanted = losses("host", " --steps 2"),
                            got = losses("cuda", " --steps 2");
  ASSERT_EQ(got.size(), 2u);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5 * wanted[i]);
  EXPECT_GT(std::abs(losses("cuda", " --steps 2 --set dropout=0")[1] - got[1]), 1e-4);
}

TEST_F(CudaCommands, RunWithServers) {
  const std::string how =
      " --steps 2 --set servers=1 --set server_placement=colocated --set steps_per_worker=4";
  const std::vector<double> wanted = losses("host", how), got = losses("cuda", how);
  ASSERT_EQ(got.size(), 8u);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5 * wanted[i]);
}

constexpr const char* as_root = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ";

TEST_F(CudaCommands, AProcessForEachGpuHasTheSameLosses) {
  if (shell("command -v mpirun").exit_code != 0) GTEST_SKIP() << "there is no mpirun here";
  const std::vector<double> wanted = losses("host");
  for (const std::string how : {"", " --library nccl"}) {
    const std::vector<double> got = losses("cuda", " --steps 3 --processes 2" + how, as_root);
    ASSERT_EQ(got.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5 * wanted[i]) << how;
  }
  losses("cuda", " --steps 2 --processes 2 --checkpoint " + path("kept"), as_root);
  EXPECT_EQ(losses("cuda", " --steps 1 --resume " + path("kept")),
            losses("cuda", " --steps 1 --processes 2 --resume " + path("kept"), as_root));
}

TEST_F(CudaCommands, AProcessThatVanishesIsNamed) {
  if (shell("command -v mpirun").exit_code != 0) GTEST_SKIP() << "there is no mpirun here";
  for (const std::string library : {"own", "nccl"})
    expect_fault("devices=2 killed_rank=1 killing_launch=20", library + " --processes 2",
                 "rank 1 (", as_root);
}

TEST_F(CudaCommands, TwoProcessesDoNotShareAGpu) {
  if (shell("command -v mpirun").exit_code != 0) GTEST_SKIP() << "there is no mpirun here";
  const Outcome done = shell(std::string(as_root) +
                             "REHEARSE_EMULATED='devices=1' " REHEARSE_EMULATED_BINARY " run " +
                             path("scenario.toml") + " --backend cuda --processes 2");
  EXPECT_EQ(done.exit_code, 2) << done.text;
  EXPECT_NE(done.text.find("would share GPU 0000:00:00.0"), std::string::npos) << done.text;
}

TEST_F(CudaCommands, RunGoesOnFromACheckpoint) {
  const std::vector<double> wanted = losses("cuda", " --steps 4 --seed 5");
  losses("cuda", " --steps 2 --seed 5 --checkpoint " + path("kept"));
  const std::vector<double> got = losses("cuda", " --steps 2 --seed 5 --resume " + path("kept"));
  EXPECT_EQ(got, (std::vector<double>{wanted[2], wanted[3]}));
}

TEST_F(CudaCommands, BenchChecksEveryNumber) {
  const std::string table =  // a number that came out wrong would be exit code 1
      " bench all_reduce --backend cuda -b 64 -e 1K -f 4 -n 2 --quiet";
  std::vector<std::string> programs{REHEARSE_EMULATED_BINARY};
  if (shell("command -v mpirun").exit_code == 0)
    programs.push_back("mpirun --oversubscribe -n 2 " REHEARSE_EMULATED_BINARY);
  for (const std::string& program : programs)
    for (const std::string how : {" --algorithm ring", " --library nccl",
                                  " --library nccl --algorithm tree --protocol LL"}) {
      const Outcome done =
          shell(as_root + ("REHEARSE_EMULATED='devices=2' " + program + table + how));
      EXPECT_EQ(done.exit_code, 0) << done.text;
      EXPECT_NE(done.text.find("# Out of bounds values : 0 OK"), std::string::npos) << done.text;
      std::istringstream lines(done.text);
      std::size_t rows = 0;
      for (std::string line; std::getline(lines, line);) rows += line.ends_with("/cuda") ? 1 : 0;
      EXPECT_EQ(rows, 3u) << done.text;
    }
}

TEST_F(CudaCommands, CalibrateWritesAProfileThatPredictTakes) {
  const Outcome done = shell("REHEARSE_EMULATED='devices=2 capability=90' " REHEARSE_EMULATED_BINARY
                             " calibrate --backend cuda "
                             "--largest 8KiB --cluster " +
                             path("machine.toml") + " -o " + path("profile.toml"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  const std::string text = read("profile.toml");
  for (const char* what : {"launch_overhead", "memory_efficiency", "communication_share", "tf32",
                           "bf16", "16x16x16 fp8", "at once", "LL128", "our all_reduce ring"})
    EXPECT_NE(text.find(what), std::string::npos) << what << "\n" << text;
  const Outcome predicted =
      shell("$R predict " + path("scenario.toml") + " --set calibration=" + path("profile.toml"));
  EXPECT_EQ(predicted.exit_code, 0) << predicted.text;
}

TEST_F(CudaCommands, AFaultIsOneLineAndExitCode3) {
  expect_fault("devices=2 memory=2000", "own", "out of memory");
  expect_fault("devices=2 failing_launch=9", "own", "cudaErrorLaunchFailure");
  expect_fault("devices=2 nccl_error=2", "nccl", "unhandled system error");
  expect_fault("devices=2 vanished_device=1", "nccl", "remote process exited");
}

TEST_F(CudaCommands, MistakesAreOneLineAndExitCode2) {
  for (const std::string words :
       {"--backend cuda --library mpi", "--backend host --library nccl",
        "--backend cuda --protocol LL", "--backend host --graph", "--backend host --cupti",
        "--backend cuda --graph --cupti", "--backend cuda --graph --set servers=1",
        "--backend cuda --compute paced"}) {
    const Outcome done = shell(std::string(REHEARSE_EMULATED_BINARY) + " run " +
                               path("scenario.toml") + " " + words);
    EXPECT_EQ(done.exit_code, 2) << words << "\n" << done.text;
    EXPECT_EQ(std::ranges::count(done.text, '\n'), 1) << done.text;
  }
}

// Emulated devices, the driver's answer where CUDA is told to see none, and CUDA itself.
TEST_F(CudaCommands, WithoutADeviceNothingRuns) {
  const std::string run = " run " + path("scenario.toml") + " --backend cuda";
  const std::string calibrate =
      " calibrate --backend cuda --cluster " + path("machine.toml") + " -o " + path("profile.toml");
  const auto with_cuda = std::filesystem::path(REHEARSE_BINARY).parent_path() / "rehearse-cuda";
  std::vector<std::string> programs{"REHEARSE_EMULATED='devices=0' " REHEARSE_EMULATED_BINARY,
                                    "CUDA_VISIBLE_DEVICES= $R"};
  if (std::filesystem::exists(with_cuda))
    programs.push_back("CUDA_VISIBLE_DEVICES= " + with_cuda.string());
  for (const std::string& program : programs)
    for (const std::string& words : {run, calibrate}) {
      const Outcome done = shell(program + words);
      EXPECT_EQ(done.exit_code, 77) << program << "\n" << done.text;
      EXPECT_EQ(std::ranges::count(done.text, '\n'), 1) << done.text;
    }
  EXPECT_FALSE(std::filesystem::exists(path("profile.toml")));
}

}  // namespace
}  // namespace rehearse::tools_test
