# The same CUDA files as C++, on emulated devices: each behind a header that says what CUDA's words
# mean, and against the real headers of CUDA, cuBLAS and NCCL.
if(CUDA_INCLUDE_DIR AND NCCL_INCLUDE_DIR)
  file(GLOB emulation CONFIGURE_DEPENDS tests/emulated_cuda/*.cpp)
  list(FILTER emulation EXCLUDE REGEX "(_test|gpu_main|tool_machine)\\.cpp$")
  foreach(source ${cuda_kernels})
    cmake_path(GET source STEM name)
    set(as_cpp ${PROJECT_BINARY_DIR}/emulated_cuda/${name}.cpp)
    file(CONFIGURE OUTPUT ${as_cpp} CONTENT
         "#include \"tests/emulated_cuda/device.hpp\"\n#include \"${source}\"\n")
    list(APPEND emulation ${as_cpp})
  endforeach()
  add_library(emulated_cuda STATIC ${emulation} ${cuda_sources})
  target_include_directories(emulated_cuda SYSTEM PUBLIC ${CUDA_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
  target_link_libraries(emulated_cuda PUBLIC rehearse_kernels Threads::Threads)
  target_compile_definitions(emulated_cuda PUBLIC REHEARSE_EMULATED_CUDA)
  # CUDA's pragmas are not ours to know; nobody's headers but CUDA's name threads with underscores.
  target_compile_options(emulated_cuda PRIVATE -Wno-unknown-pragmas)
  # The command line with --backend cuda on emulated devices, for tests of it.
  add_executable(rehearse-emulated tools/main.cpp tools/cuda_backend.cpp tools/cuda_calibrate.cpp
                 tests/emulated_cuda/tool_machine.cpp)
  target_link_libraries(rehearse-emulated PRIVATE ${mpi_first} rehearse_tools emulated_cuda
                        CLI11::CLI11)
else()
  message(STATUS "CUDA's and NCCL's headers not found: tests on emulated GPUs are left out")
endif()
