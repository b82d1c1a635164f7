# Tests on emulated GPUs beside those that GoogleTest lists.
set(as_root "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")

# All of them once more under the thread sanitizer; here only some, each a test of its own: what is
# slow on a busy machine takes its own time and no other's.
if(TARGET emulated_races)
  add_executable(emulated_races_tests tests/emulated_cuda/races/races_test.cpp
                 $<TARGET_OBJECTS:emulated_cuda_tests> $<TARGET_OBJECTS:emulated_race_kernels>)
  target_link_libraries(emulated_races_tests PRIVATE test_support rehearse_kernels emulated_races)
  string(JOIN ":" race_tests Seeds/Races.* Elementwise.* Optimizers.* Rows.* Selection.*
         TiledAttention.* Fp8.* CudaCalls.* CudaFaults.* GraphFaults.* MakingGraphs.* *Between*
         *WithoutPeer* *CudaCollectives.Maxima* */mlp_dp4 */mlp_tp4_clipped */mlp_zero3_overlap
         */mlp_recompute_zbh1 *CudaEquivalence*/llama_zero3
         -*Embedding:*ExactThresholdAndTopK:*AMissingEdge*)
  gtest_discover_tests(emulated_races_tests NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
                       TEST_PREFIX races. TEST_FILTER ${race_tests}
                       PROPERTIES LABELS emulated_cuda TIMEOUT 1200)
endif()

# A process for each GPU, held against one process with all.
if(TARGET emulated_cuda AND TARGET kernels_mpi AND NOT REHEARSE_SANITIZE)
  add_executable(mpi_same_gpu_trainings tests/emulated_cuda/processes/same_trainings.cpp
                 tests/support/interpreter.cpp)
  target_link_libraries(mpi_same_gpu_trainings PRIVATE kernels_mpi emulated_cuda)
  add_test(NAME mpi_same_gpu_trainings_4
           COMMAND mpirun --oversubscribe -n 4 $<TARGET_FILE:mpi_same_gpu_trainings>)
  set_tests_properties(mpi_same_gpu_trainings_4 PROPERTIES LABELS emulated_cuda TIMEOUT 1800
                       ENVIRONMENT "${as_root}")
endif()

# The whole day on emulated GPUs: every command of it runs, and its page is looked at.
if(TARGET rehearse-emulated AND Python3_FOUND AND NOT REHEARSE_SANITIZE)
  add_test(NAME gpu_day COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/emulated_cuda/gpu_day_test.py ${PROJECT_BINARY_DIR})
  set_tests_properties(gpu_day PROPERTIES LABELS emulated_cuda TIMEOUT 1200 COST 160
                       ENVIRONMENT "${as_root}")
endif()

# The same tests of kernels on a real GPU, linked with the real libraries; skipped without one.
if(TARGET rehearse_cuda)
  set(kernel_tests elementwise rows attention selection optimizers fp8)
  list(TRANSFORM kernel_tests
       REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tests/emulated_cuda/\\1_test.cpp")
  compiled_together(kernel_tests gpu_tests)
  add_executable(gpu_tests tests/emulated_cuda/gpu_main.cpp ${kernel_tests})
  target_compile_options(gpu_tests PRIVATE ${quick_to_compile})
  target_include_directories(gpu_tests SYSTEM PRIVATE ${CUDA_INCLUDE_DIR})
  target_link_libraries(gpu_tests PRIVATE rehearse_cuda rehearse_kernels GTest::gtest)
  add_test(NAME gpu COMMAND gpu_tests)
  set_tests_properties(gpu PROPERTIES LABELS gpu SKIP_RETURN_CODE 77)
endif()
