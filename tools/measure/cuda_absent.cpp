// A binary without CUDA: a program that is linked with tools/measure/cuda_backend.cpp never takes
// this file out of the library.
#include "tools/measure/cuda_backend.hpp"

namespace rehearse {

const CudaBackend* cuda_backend() { return nullptr; }

}  // namespace rehearse
