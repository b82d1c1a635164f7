# CUDA: the machine's toolkit, or the wheels that tools/test puts into the build folder. nvcc builds
# for real devices; the headers alone are enough for the emulated ones of the tests.
set(REHEARSE_CUDA AUTO CACHE STRING "CUDA kernels by nvcc: AUTO (where there is one), ON or OFF")
set(REHEARSE_CUDA_ARCHITECTURES 80 90 CACHE STRING "What nvcc builds for")
set(cuda_hints ${PROJECT_SOURCE_DIR}/build/cuda-toolkit /usr/local/cuda)
find_path(CUDA_INCLUDE_DIR cuda_runtime.h HINTS ${cuda_hints} PATH_SUFFIXES include)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${cuda_hints} PATH_SUFFIXES include)
find_program(NVCC nvcc HINTS ${cuda_hints} PATH_SUFFIXES bin)
file(GLOB cuda_kernels CONFIGURE_DEPENDS kernels/math/*.cu)
# The executor knows nothing of emulation: compiled once, for real devices and for emulated ones.
if(CUDA_INCLUDE_DIR AND NCCL_INCLUDE_DIR)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cpp)
  set(alone ${cuda_sources})
  list(FILTER alone INCLUDE REGEX "/cuda_(run_call|run_collectives|collectives)\\.cpp$")
  compiled_together(cuda_sources cuda_executor ${alone})
  add_library(cuda_executor OBJECT EXCLUDE_FROM_ALL ${cuda_sources})
  set_target_properties(cuda_executor PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(cuda_executor SYSTEM PUBLIC ${CUDA_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
  target_link_libraries(cuda_executor PUBLIC rehearse_kernels Threads::Threads ${CMAKE_DL_LIBS})
endif()
if(NVCC AND TARGET cuda_executor AND NOT REHEARSE_CUDA STREQUAL "OFF" AND NOT REHEARSE_SANITIZE)
  set(CMAKE_CUDA_COMPILER ${NVCC})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  set(CMAKE_CUDA_ARCHITECTURES ${REHEARSE_CUDA_ARCHITECTURES})
  # With each object file comes ptxas' report of it, which a test reads.
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/lib/ptxas_report.sh)
  if(CCACHE)
    list(APPEND CMAKE_CUDA_COMPILER_LAUNCHER ${ccache_command})
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc speaks C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  find_package(CUDAToolkit REQUIRED)
  find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
  add_library(rehearse_cuda STATIC ${cuda_kernels} $<TARGET_OBJECTS:cuda_executor>)
  set_target_properties(rehearse_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(rehearse_cuda PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(rehearse_cuda SYSTEM PRIVATE ${CUDA_INCLUDE_DIR} ${NCCL_INCLUDE_DIR})
  # Only to link: what g++ is told to warn of, nvcc would not understand.
  target_link_libraries(rehearse_cuda PUBLIC $<LINK_ONLY:rehearse_kernels> fmt::fmt
                        CUDA::cudart CUDA::cublas CUDA::cublasLt ${NCCL_LIBRARY} ${CMAKE_DL_LIBS})
  # No contraction to fused multiply-adds but where a kernel says fmaf: the same bits as the host.
  target_compile_options(rehearse_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false
    --expt-relaxed-constexpr -Xptxas=-v -Werror=all-warnings
    -Xcompiler=-Wall,-Wextra,-Wshadow,-Wconversion>)
elseif(REHEARSE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "REHEARSE_CUDA is ON, but nvcc or NCCL's header was not found")
elseif(NOT REHEARSE_SANITIZE)
  message(STATUS "nvcc with NCCL not found: --backend cuda is left out")
endif()
