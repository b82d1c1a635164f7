// C = a_scale b_scale A · B' of fp8 numbers, with sums in fp32 on a GPU and in fp64 here. Rows of A
// and of B lie without gaps: the one order that tensor cores of every device with fp8 take.
//
//   A[m,k] (e4m3 or e5m2), B[n,k] (likewise, but not e5m2 both), C[m,n] in fp32
//
// The scales are what training recipes keep beside a tensor: x is stored as x / scale, so that the
// largest of it fits the format (Micikevicius et al. 2022, "FP8 formats for deep learning").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rehearse {

enum class Fp8Format : std::uint8_t { e4m3, e5m2 };

struct Fp8Product {
  std::size_t m = 0, n = 0, k = 0;
};

struct Fp8Matrix {
  std::span<const std::uint8_t> bits;
  Fp8Format format = Fp8Format::e4m3;
  float scale = 1;
};

/// By three loops.
void gemm_fp8(const Fp8Product& product, const Fp8Matrix& a, const Fp8Matrix& b,
              std::span<float> c);

}  // namespace rehearse
