// The text of a failed call, with its place as compilers print it.
#include "kernels/math/cuda_try.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace rehearse {

void device_call_failed(std::string_view call, std::string_view why, const char* file, int line) {
  const std::string_view path = file;
  const std::size_t folder = path.rfind("kernels/");
  throw DeviceError(fmt::format("{}:{}: {}: {}", folder == path.npos ? path : path.substr(folder),
                                line, call, why));
}

}  // namespace rehearse
