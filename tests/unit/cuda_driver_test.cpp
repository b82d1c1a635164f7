// What `rehearse doctor` makes of a machine with GPUs, with old ones, and without.
#include "tools/measure/cuda_driver.hpp"

#include <gtest/gtest.h>

namespace rehearse::cuda_driver_test {
namespace {

TEST(Doctor, WithoutADriverSaysSoAndWhatWorksAllTheSame) {
  const CudaFacts facts = ask_cuda("libno_such_driver.so.1", "libno_such_nccl.so.2");
  EXPECT_TRUE(facts.gpus.empty());
  const std::string why = "no Nvidia driver on this machine (libno_such_driver.so.1 was not found)";
  EXPECT_EQ(doctor_text(facts, {}),
            "driver    none\n"
            "NCCL      none\n"
            "toolkit   none\n"
            "mpirun    none\n"
            "what will work:\n"
            "  predict, sweep, --backend sim and host       yes\n"
            "  run, bench, calibrate --backend cuda         no: " +
                why +
                "\n"
                "  --library nccl, and several nodes            no: NCCL was not found\n"
                "  a process for each GPU                       no: there is no mpirun\n"
                "  transfers between GPUs without the host      no: " +
                why +
                "\n"
                "  building the kernels (nvcc)                  no: there is no nvcc\n"
                "no usable GPU: " +
                why + "\n");
}

TEST(Doctor, ALibraryThatIsNoDriverIsNoDriver) {
  const CudaFacts facts = ask_cuda("libm.so.6", "libm.so.6");
  EXPECT_EQ(facts.trouble, "the Nvidia driver is there, but finds no device it can use");
  EXPECT_EQ(facts.nccl, 0);
}

TEST(Doctor, NamesEveryGpuAndWhoReachesWhom) {
  CudaFacts facts;
  facts.driver = 13000;
  facts.nccl = 22809;
  facts.gpus = {{"NVIDIA H100", "0000:3b:00.0", 85'000'000'000, 9, 0, 132, 1, {true, false}},
                {"Tesla V100", "0000:3c:00.0", 34'000'000'000, 7, 0, 80, {}, {true, true}}};
  EXPECT_EQ(doctor_text(facts, {"/cuda/nvcc", "/here/rehearse-cuda", "/usr/bin/mpirun"}),
            "driver    for CUDA 13.0\n"
            "NCCL      2.28.9\n"
            "toolkit   /cuda/nvcc\n"
            "mpirun    /usr/bin/mpirun\n"
            "GPU 0     NVIDIA H100, sm_90, 132 SMs, 85.0 GB, 0000:3b:00.0, NUMA node 1: usable\n"
            "GPU 1     Tesla V100, sm_70, 80 SMs, 34.0 GB, 0000:3c:00.0, NUMA node unknown: too "
            "old: kernels are built for sm_80 and newer\n"
            "peer access (row reaches column):\n"
            "    0  x .\n"
            "    1  x x\n"
            "what will work:\n"
            "  predict, sweep, --backend sim and host       yes\n"
            "  run, bench, calibrate --backend cuda         yes\n"
            "  --library nccl, and several nodes            yes\n"
            "  a process for each GPU                       yes\n"
            "  transfers between GPUs without the host      no: not between all of them; copies go "
            "through the host\n"
            "  building the kernels (nvcc)                  yes\n"
            "GPUs can be used: tools/gpu-day tests, calibrates and compares\n");
}

TEST(Doctor, AnOldDriverIsNamed) {
  CudaFacts facts;
  facts.driver = 12040;
  const std::string text = doctor_text(facts, {});
  EXPECT_NE(text.find("for CUDA 12.4, too old: CUDA 13.0 is needed"), text.npos);
  EXPECT_NE(text.find("no usable GPU: the driver is too old"), text.npos);
}

}  // namespace
}  // namespace rehearse::cuda_driver_test
