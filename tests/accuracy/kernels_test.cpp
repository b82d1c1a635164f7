// Today's errors of kernels by kind, GPU and precision, of the published rows and of the large
// collection where it is: shares, rounded up; correlation in groups and memory rounded down; rows
// scored.
#include "tests/accuracy/measurements.hpp"

namespace rehearse::kernels_test {
namespace {

TEST(PublishedAccuracy, Kernels) {
  constexpr AccuracyBound bounds[] = {
      {"", 0.17, 0.05, 0.68, -1, 0, 12},
  };
  expect_within(accuracy_of(published("kernels.csv")), bounds);
}

TEST(CollectedAccuracy, Kernels) {
  const std::string file = collected("kernels.csv");
  if (file.empty()) GTEST_SKIP() << "no kernels.csv: set REHEARSE_MEASUREMENTS";
  constexpr AccuracyBound bounds[] = {
      {"", 0.15, 0.09, 0.35, -1, 0, 1485},
      {"gemm a100-sxm-80gb fp16", 0.17, 0.05, 0.71, -1, 0, 21},
      {"gemm v100-sxm2-16gb fp16", 0.15, 0.08, 0.38, -1, 0, 123},
      {"gemm t4 fp32", 0.15, 0.13, 0.3, -1, 0, 246},
      {"gemm t4 fp16", 0.11, 0.09, 0.18, -1, 0, 123},
      {"gemm v100-pcie-32gb fp32", 0.07, 0.05, 0.16, -1, 0, 123},
      {"gemm p4 fp32", 0.14, 0.1, 0.34, -1, 0, 123},
      {"gemm a100-pcie-80gb fp32", 0.08, 0.06, 0.17, -1, 0, 123},
      {"bandwidth a100-pcie-80gb fp32", 0.17, 0.13, 0.39, -1, 0, 87},
      {"bandwidth p4 fp32", 0.2, 0.17, 0.45, -1, 0, 87},
      {"bandwidth t4 fp32", 0.16, 0.09, 0.36, -1, 0, 87},
      {"bandwidth v100-pcie-32gb fp32", 0.23, 0.27, 0.42, -1, 0, 87},
      {"gemm a100-pcie-80gb bf16", 0.09, 0.08, 0.14, -1, 0, 136},
      {"bandwidth v100-pcie-32gb none", 0.42, 0.08, 1.14, -1, 0, 29},
      {"copy v100-pcie-32gb none", 0.41, 0.34, 0.66, -1, 0, 29},
      {"attention a100-pcie-80gb bf16", 0.2, 0.18, 0.32, -1, 0, 24},
  };
  expect_within(accuracy_of(file), bounds);
}

}  // namespace
}  // namespace rehearse::kernels_test
