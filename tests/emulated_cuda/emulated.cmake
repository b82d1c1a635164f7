# The same CUDA files as C++, on emulated devices: each behind a header that says what CUDA's words
# mean, and against the real headers of CUDA, cuBLAS and NCCL.
if(CUDA_INCLUDE_DIR AND NCCL_INCLUDE_DIR)
  file(GLOB emulation CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/emulated_cuda/*.cpp)
  list(FILTER emulation EXCLUDE REGEX "(_test|_kernels|gpu_main|tool_machine)\\.cpp$")
  set(alone ${emulation})
  list(FILTER alone INCLUDE REGEX "/(nccl_meeting|switching)\\.cpp$")
  compiled_together(emulation emulation ${alone})
  set(kernels_as_cpp ${PROJECT_SOURCE_DIR}/tests/emulated_cuda/broken_kernels.cpp)
  foreach(source ${cuda_kernels})
    cmake_path(GET source STEM name)
    set(as_cpp ${PROJECT_BINARY_DIR}/emulated_cuda/${name}.cpp)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    file(CONFIGURE OUTPUT ${as_cpp} CONTENT
         "#include \"tests/emulated_cuda/device.hpp\"\n#include \"${source}\"\n")
    list(APPEND kernels_as_cpp ${as_cpp})
  endforeach()
  set(alone ${kernels_as_cpp})
  list(FILTER alone INCLUDE REGEX "/(top_k|vocabulary_loss)\\.cpp$")
  compiled_together(kernels_as_cpp emulated_kernels ${alone})
  # Kernels spell out their fused products; as a call of the C library each is a fifth of all time.
  include(CheckCXXSourceRuns)
  set(CMAKE_REQUIRED_FLAGS -mfma)
  check_cxx_source_runs("#include <cmath>
    int main(int n, char**) { return std::fma(float(n), 2.F, -2.F * float(n)) == 0 ? 0 : 1; }"
    REHEARSE_HAS_FMA)
  unset(CMAKE_REQUIRED_FLAGS)
  if(REHEARSE_HAS_FMA)
    set_source_files_properties(${kernels_as_cpp} PROPERTIES COMPILE_OPTIONS -mfma)
  endif()
  # The emulator with the kernels and the executor.
  add_library(emulated_cuda STATIC ${emulation} ${kernels_as_cpp} $<TARGET_OBJECTS:cuda_executor>)
  target_include_directories(emulated_cuda SYSTEM PUBLIC ${CUDA_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
  target_link_libraries(emulated_cuda PUBLIC rehearse_kernels Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_definitions(emulated_cuda PUBLIC REHEARSE_EMULATED_CUDA)
  # CUDA's pragmas are not ours to know; only CUDA's headers name threads with underscores.
  target_compile_options(emulated_cuda PRIVATE -Wno-unknown-pragmas)
  # The command line with --backend cuda on emulated devices, for tests of it.
  add_executable(rehearse-emulated $<TARGET_OBJECTS:rehearse_main>
                 $<TARGET_OBJECTS:rehearse_cuda_commands> tests/emulated_cuda/tool_machine.cpp)
  target_link_libraries(rehearse-emulated PRIVATE rehearse_tools emulated_cuda CLI11::CLI11)
  # What the tests load in the place of Nsight, and of CUPTI's library, which finds the machine's
  # clock and work in the program that loads it.
  set(listening -Wl,--export-dynamic-symbol=emulated_cuda_listen
      -Wl,--export-dynamic-symbol=emulated_cuda_clock)
  if(EXISTS ${CUDA_INCLUDE_DIR}/nvtx3/nvToolsExt.h)
    add_library(nvtx_listener MODULE tests/emulated_cuda/plugins/nvtx_listener.cpp)
    target_include_directories(nvtx_listener SYSTEM PRIVATE ${CUDA_INCLUDE_DIR})
    add_dependencies(rehearse-emulated nvtx_listener)
    list(APPEND profiler_places
         "#define REHEARSE_NVTX_LISTENER \"$<TARGET_FILE:nvtx_listener>\"\n")
  endif()
  if(EXISTS ${CUDA_INCLUDE_DIR}/cupti.h)
    add_library(fake_cupti MODULE tests/emulated_cuda/plugins/fake_cupti.cpp)
    target_include_directories(fake_cupti PRIVATE ${PROJECT_SOURCE_DIR})
    target_include_directories(fake_cupti SYSTEM PRIVATE ${CUDA_INCLUDE_DIR})
    set_target_properties(fake_cupti PROPERTIES PREFIX "" OUTPUT_NAME libcupti SUFFIX .so.13
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fake_cupti)
    target_link_options(rehearse-emulated PRIVATE ${listening})
    add_dependencies(rehearse-emulated fake_cupti)
    list(APPEND profiler_places "#define REHEARSE_FAKE_CUPTI \"$<TARGET_FILE:fake_cupti>\"\n")
  endif()
  # The same under the thread sanitizer, which sees what kernels touch; who touches it and what
  # orders it the emulator tells it, unseen itself.
  if(NOT REHEARSE_SANITIZE)
    add_library(emulated_races STATIC ${emulation} $<TARGET_OBJECTS:cuda_executor>)
    add_library(emulated_race_kernels OBJECT ${kernels_as_cpp})
    foreach(target emulated_races emulated_race_kernels)
      target_include_directories(${target} SYSTEM PUBLIC ${CUDA_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
      target_link_libraries(${target} PUBLIC rehearse_kernels Threads::Threads ${CMAKE_DL_LIBS})
      target_compile_definitions(${target} PUBLIC REHEARSE_EMULATED_CUDA REHEARSE_RACES)
      target_compile_options(${target} PRIVATE -Wno-unknown-pragmas)
    endforeach()
    target_compile_options(emulated_race_kernels PRIVATE -fsanitize=thread)
    target_link_options(emulated_races PUBLIC -fsanitize=thread)
  endif()
else()
  message(STATUS "CUDA's and NCCL's headers not found: tests on emulated GPUs are left out")
endif()
