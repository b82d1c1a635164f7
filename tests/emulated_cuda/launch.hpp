// cudaLaunchKernelEx of the emulated runtime: arguments are converted and copied as CUDA does, and
// pointers among them must be memory that the device may touch.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace emulated_cuda {

/// Puts a kernel on its stream.
cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, std::string_view signature,
                           const void* kernel, std::vector<const void*> pointers,
                           std::function<void()> body);

template <class Parameter>
void add_if_pointer(std::vector<const void*>& pointers, const Parameter& parameter) {
  if constexpr (std::is_pointer_v<Parameter>) pointers.push_back(parameter);
}

template <class... Parameters, class... Arguments>
cudaError_t launch(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                   Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  static_assert((std::is_trivially_copyable_v<Parameters> && ...),
                "parameters are copied bytewise");
  const std::tuple<Parameters...> copies{static_cast<Parameters>(arguments)...};
  std::vector<const void*> pointers;
  std::apply([&](const auto&... each) { (add_if_pointer(pointers, each), ...); }, copies);
  return enqueue_kernel(*config, __PRETTY_FUNCTION__, reinterpret_cast<const void*>(kernel),
                        std::move(pointers), [kernel, copies] { std::apply(kernel, copies); });
}

}  // namespace emulated_cuda
