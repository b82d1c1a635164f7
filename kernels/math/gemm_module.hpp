// What the module with OpenBLAS offers to gemm.cpp.
#pragma once

#include "kernels/math/gemm.hpp"

namespace rehearse {

struct BlasFunctions {
  /// With all strides given, and no dimension 0.
  void (*multiply)(const MatrixProduct& product, const float* a, const float* b, float* c);
  const char* (*name)();
};

}  // namespace rehearse

extern "C" const rehearse::BlasFunctions* rehearse_openblas();
