// C = alpha · op(A) · op(B) + beta · C in fp32, by OpenBLAS where its module is.
//
// All matrices are row-major: element (r, c) of a stored matrix is at r * stride + c. cuBLAS counts
// columns first; read that way each of ours is its own transpose, and C' = op(B)' op(A)'. So the
// same product is, in the arguments of cublasGemmEx (or cublasSgemm):
//
//   (transpose_b, transpose_a, n, m, k, &alpha, B, b_stride, A, a_stride, &beta, C, c_stride)
//
// with no copy and no transposition. This is the only place where the two orders meet.
//
// A layer y = x W + b with x[tokens, in], W[in, out] is three products:
//   forward y = x W;  backward dx = dy W' (transpose_b);  dW += x' dy (transpose_a, beta = 1).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace rehearse {

struct MatrixProduct {
  std::size_t m = 0, n = 0, k = 0;  // op(A) is m × k, op(B) k × n, C m × n
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
  /// Between the first elements of two rows as stored; 0 stands for rows without gaps.
  std::size_t a_stride = 0, b_stride = 0, c_stride = 0;

  friend bool operator==(const MatrixProduct&, const MatrixProduct&) = default;
};

/// With beta = 0, C is not read and may hold anything; with k = 0, C = beta · C. One thread.
void gemm(const MatrixProduct& product, std::span<const float> a, std::span<const float> b,
          std::span<float> c);

/// The same by three loops with sums in fp64: what the fast one is tested against, and what stands
/// in for it where there is no OpenBLAS.
void gemm_plain(const MatrixProduct& product, std::span<const float> a, std::span<const float> b,
                std::span<float> c);

/// Who computes gemm(), for reports: "OpenBLAS 0.3.21 …" with its kernels' processor, or "plain".
/// Whoever measures calls it first: OpenBLAS is loaded by the first call of either.
std::string_view gemm_library();

}  // namespace rehearse
