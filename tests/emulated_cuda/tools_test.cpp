// `run` and `calibrate --backend cuda` as scripts see them, in the program that is linked with
// emulated GPUs: losses as on the host, a profile that predict takes, and faults as one line with
// exit code 3 and nothing left behind (that would be exit code 99).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/shell.hpp"

namespace rehearse {
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

class CudaCommands : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) /
        (std::string("cuda_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "scenario.toml") << scenario;
    std::ofstream(folder_ / "machine.toml") << machine;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<double> losses(const std::string& backend,
                             const std::string& how = " --steps 3") const {
    const Outcome done = shell("REHEARSE_EMULATED='devices=2' " + program(backend) + " run " +
                               path("scenario.toml") + " --backend " + backend + how + " --json " +
                               path("out.json"));
    EXPECT_EQ(done.exit_code, 0) << done.text;
    std::ifstream file(path("out.json"));
    const nlohmann::json read = nlohmann::json::parse(file, nullptr, false);
    EXPECT_EQ(read["backend"], backend);
    std::vector<double> found;
    for (const auto& step : read["steps"]) found.push_back(step["loss"]);
    return found;
  }
  static std::string program(const std::string& backend) {
    return backend == "cuda" ? REHEARSE_EMULATED_BINARY : "$R";
  }
  void expect_fault(const std::string& machine_words, const std::string& library,
                    const std::string& words) const {
    const Outcome done = shell(
        "REHEARSE_EMULATED='" + machine_words + "' timeout 60 " REHEARSE_EMULATED_BINARY " run " +
        path("scenario.toml") + " --steps 1 --backend cuda --library " + library);
    EXPECT_EQ(done.exit_code, 3) << machine_words << "\n" << done.text;
    EXPECT_NE(done.text.find(words), std::string::npos) << done.text;
    // The machine itself tells of a kernel that it lets fail, and the address sanitizer of fibers.
    std::istringstream lines(done.text);
    std::size_t told = 0;
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("emulated CUDA: ") && !line.starts_with("==")) ++told;
    EXPECT_EQ(told, 1u) << done.text;
  }

  std::filesystem::path folder_;
};

TEST_F(CudaCommands, RunHasTheLossesOfTheHost) {
  const std::vector<double> wanted = losses("host");
  ASSERT_EQ(wanted.size(), 3u);
  for (const std::string how : {"", " --library nccl", " --library nccl --algorithm Tree"}) {
    const std::vector<double> got = losses("cuda", " --steps 3" + how);
    ASSERT_EQ(got.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5 * wanted[i]) << how;
  }
}

TEST_F(CudaCommands, RunGoesOnFromACheckpoint) {
  const std::vector<double> wanted = losses("cuda", " --steps 4 --seed 5");
  losses("cuda", " --steps 2 --seed 5 --checkpoint " + path("kept"));
  const std::vector<double> got = losses("cuda", " --steps 2 --seed 5 --resume " + path("kept"));
  EXPECT_EQ(got, (std::vector<double>{wanted[2], wanted[3]}));
}

TEST_F(CudaCommands, CalibrateWritesAProfileThatPredictTakes) {
  const Outcome done = shell("REHEARSE_EMULATED='devices=2' " REHEARSE_EMULATED_BINARY
                             " calibrate --backend cuda "
                             "--largest 8KiB --cluster " +
                             path("machine.toml") + " -o " + path("profile.toml"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  std::ifstream file(path("profile.toml"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const char* what : {"launch_overhead", "memory_efficiency", "communication_share", "tf32",
                           "bf16", "at once", "LL128", "our all_reduce ring"})
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
        "--backend cuda --protocol LL", "--backend cuda --compute paced"}) {
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
}  // namespace rehearse
