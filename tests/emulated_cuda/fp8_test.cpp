// Products of fp8 numbers by cuBLASLt against the reference; what cuBLASLt does not take, and
// devices that have none, refused in one line.
#include <cublas_v2.h>

#include "kernels/cuda/cuda_gemm_fp8.hpp"
#include "kernels/cuda/cuda_handles.hpp"
#include "kernels/math/number_formats.hpp"
#include "sim/base/error.hpp"
#include "tests/emulated_cuda/arrays.hpp"

namespace rehearse::fp8_test {
namespace {

class Fp8 : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
#ifdef REHEARSE_EMULATED_CUDA
    TearDown();
    emulated_cuda::reset({.capability = 90});
    CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
#endif
    if (!multiplies_fp8(0)) GTEST_SKIP() << "this device has no fp8";
  }
};

std::vector<std::uint8_t> narrow(const Floats& values, Fp8Format format) {
  std::vector<std::uint8_t> bits;
  for (const float value : values)
    bits.push_back(format == Fp8Format::e4m3 ? static_cast<std::uint8_t>(to_e4m3(value))
                                             : static_cast<std::uint8_t>(to_e5m2(value)));
  return bits;
}

TEST_F(Fp8, AsTheReference) {
  using enum Fp8Format;
  SeededNumbers numbers(12);
  const BlasHandle blas = make_blas(0);
  for (const auto& [m, n, k] : {std::array{16, 16, 16}, std::array{16, 48, 32},
                                std::array{64, 32, 112}, std::array{128, 16, 16}})
    for (const auto& [a_format, b_format] :
         {std::pair{e4m3, e4m3}, std::pair{e4m3, e5m2}, std::pair{e5m2, e4m3}}) {
      SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
      const Fp8Product product{static_cast<std::size_t>(m), static_cast<std::size_t>(n),
                               static_cast<std::size_t>(k)};
      const auto a = narrow(numbers.floats(product.m * product.k, -3, 3), a_format);
      const auto b = narrow(numbers.floats(product.n * product.k, -3, 3), b_format);
      Floats c(product.m * product.n), plain(c.size());
      gemm_fp8(product, {a, a_format, 0.25F}, {b, b_format, 3.0F}, c);
      gemm_fp8(product, {a, a_format}, {b, b_format}, plain);
      const DeviceArray<std::uint8_t> da{a}, db{b};
      const DeviceArray<float> a_scale{Floats{0.25F}}, b_scale{Floats{3.0F}}, dc{c.size()};
      const DeviceArray<std::byte> workspace{1 << 20};
      gemm_fp8(blas.get(), stream, product, {da.data(), a_format, a_scale.data()},
               {db.data(), b_format, b_scale.data()}, dc.data(), workspace);
      // Tensor cores add fp8 products with some 14 bits between promotions to fp32.
      expect_close(dc.values(), widen(c), 1e-3);
      gemm_fp8(blas.get(), stream, product, {da.data(), a_format}, {db.data(), b_format}, dc.data(),
               {});
      expect_close(dc.values(), widen(plain), 1e-3);
    }
}

TEST_F(Fp8, WhatItDoesNotTakeIsRefused) {
  const BlasHandle blas = make_blas(0);
  const DeviceArray<std::uint8_t> x{1024};
  const DeviceArray<float> y{1024};
  for (const Fp8Product& product : {Fp8Product{8, 16, 16}, Fp8Product{16, 17, 16}})
    EXPECT_THROW(gemm_fp8(blas.get(), stream, product, {x.data()}, {x.data()}, y.data(), {}),
                 DeviceError);
  const DeviceFp8Matrix wide{x.data(), Fp8Format::e5m2};
  EXPECT_THROW(gemm_fp8(blas.get(), stream, {16, 16, 16}, wide, wide, y.data(), {}), DeviceError);
}

#ifdef REHEARSE_EMULATED_CUDA
TEST(Fp8Devices, OneWithoutItSaysSo) {
  emulated_cuda::reset({.capability = 80});
  EXPECT_FALSE(multiplies_fp8(0));
  const BlasHandle blas = make_blas(0);
  try {
    gemm_fp8(blas.get(), nullptr, {16, 16, 16}, {}, {}, nullptr, {});
    ADD_FAILURE() << "it was not refused";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "device 0 (sm_80) does not multiply fp8 numbers: sm_89 and later do");
  }
}

TEST(Fp8Devices, FromAdaOn) {
  for (const auto& [capability, has] :
       {std::pair{75, false}, {86, false}, {89, true}, {120, true}}) {
    emulated_cuda::reset({.capability = capability});
    EXPECT_EQ(multiplies_fp8(0), has) << capability;
  }
}
#endif

}  // namespace
}  // namespace rehearse::fp8_test
