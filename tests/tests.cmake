# All tests, where GoogleTest is: one executable for each folder, and scripts beside them.
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  message(STATUS "GoogleTest not found: the tests are left out")
  return()
endif()
enable_testing()
include(GoogleTest)
# One executable per folder of tests; the folder's name is the CTest label.
file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.cpp)
add_library(test_support STATIC ${support_sources})
target_link_libraries(test_support PUBLIC rehearse_tools tools_lab GTest::gtest_main CLI11::CLI11
                      nlohmann_json::nlohmann_json)
target_include_directories(test_support PUBLIC ${PROJECT_BINARY_DIR}/places)
if(TARGET sim_simgrid)
  target_compile_definitions(test_support PUBLIC REHEARSE_HAS_SIMGRID)
endif()
target_compile_options(test_support PRIVATE ${quick_to_compile})
target_precompile_headers(test_support PRIVATE ${common_headers} <gtest/gtest.h>)
include(tests/emulated_cuda/emulated.cmake)
set(places "#define REHEARSE_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\"\n"
           "#define REHEARSE_BINARY \"$<TARGET_FILE:rehearse>\"\n")
if(TARGET rehearse-emulated)
  list(APPEND places "#define REHEARSE_EMULATED_BINARY \"$<TARGET_FILE:rehearse-emulated>\"\n")
endif()
list(APPEND places ${profiler_places})
list(JOIN places "" places)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/places/rehearse_places.hpp CONTENT "${places}")
include(tests/list_tests.cmake)
file(GLOB test_folders CONFIGURE_DEPENDS LIST_DIRECTORIES true tests/*)
foreach(folder ${test_folders})
  file(GLOB test_sources CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  if(NOT test_sources)
    continue()
  endif()
  cmake_path(GET folder FILENAME label)
  if(label STREQUAL "differential" AND NOT TARGET sim_simgrid)
    continue()
  endif()
  if(label STREQUAL "emulated_cuda" AND NOT TARGET emulated_cuda)
    continue()
  endif()
  compiled_together(test_sources ${label}_tests)
  add_executable(${label}_tests ${test_sources})
  target_link_libraries(${label}_tests PRIVATE test_support rehearse_kernels)
  if(label STREQUAL "differential")
    target_link_libraries(${label}_tests PRIVATE sim_simgrid)
  elseif(label STREQUAL "emulated_cuda")
    target_link_libraries(${label}_tests PRIVATE emulated_cuda)
    target_link_options(${label}_tests PRIVATE ${listening})
    add_dependencies(${label}_tests rehearse-emulated)
  endif()
  target_compile_options(${label}_tests PRIVATE ${quick_to_compile})
  target_precompile_headers(${label}_tests REUSE_FROM test_support)
  add_dependencies(${label}_tests rehearse)
  list_tests(${label})
endforeach()

# Ranks as processes, held against ranks as threads.
if(TARGET kernels_mpi AND NOT REHEARSE_SANITIZE)
  add_executable(mpi_same_bits tests/host/mpi/same_bits.cpp)
  target_link_libraries(mpi_same_bits PRIVATE kernels_mpi rehearse_kernels)
  add_executable(mpi_same_trainings tests/host/mpi/same_trainings.cpp tests/support/interpreter.cpp)
  target_link_libraries(mpi_same_trainings PRIVATE kernels_mpi rehearse_kernels)
  add_executable(mpi_library tests/host/mpi/library.cpp)
  target_link_libraries(mpi_library PRIVATE kernels_mpi rehearse_kernels)
  add_executable(mpi_stopped tests/host/mpi/stopped.cpp)
  target_link_libraries(mpi_stopped PRIVATE kernels_mpi rehearse_kernels)
  add_test(NAME mpi_stopped COMMAND mpirun --oversubscribe -n 3 $<TARGET_FILE:mpi_stopped>)
  set_tests_properties(mpi_stopped PROPERTIES LABELS host TIMEOUT 120 ENVIRONMENT
    "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    PASS_REGULAR_EXPRESSION "told: rank 1 .* is stopped, and not heard of for 5 s")
  foreach(run same_bits:2 same_bits:5 same_trainings:4 same_trainings:4:library library:2 library:4)
    string(REPLACE ":" ";" words ${run})
    list(POP_FRONT words what ranks)
    string(REPLACE ":" "_" name ${run})
    add_test(NAME mpi_${name}
             COMMAND mpirun --oversubscribe -n ${ranks} $<TARGET_FILE:mpi_${what}> ${words})
    set_tests_properties(mpi_${name} PROPERTIES LABELS host TIMEOUT 900 ENVIRONMENT
      "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
  endforeach()
endif()

find_package(Python3 QUIET COMPONENTS Interpreter)
include(tests/emulated_cuda/tests.cmake)

# Long tests have a COST, which lets them begin first: at the end they would leave processors idle.
# Where namespaces may not be made it says so, and is skipped.
if(Python3_FOUND AND TARGET kernels_mpi AND NOT REHEARSE_SANITIZE)
  add_test(NAME cluster COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/cluster/cluster_test.py $<TARGET_FILE:rehearse>)
  add_test(NAME faults COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/cluster/faults_test.py $<TARGET_FILE:rehearse>)
  set_tests_properties(cluster faults PROPERTIES LABELS cluster SKIP_RETURN_CODE 77 TIMEOUT 900
                       RESOURCE_LOCK namespaces)
  set_tests_properties(cluster PROPERTIES COST 190)
  set_tests_properties(faults PROPERTIES COST 170)
endif()
if(Python3_FOUND AND NOT REHEARSE_SANITIZE)
  add_test(NAME host_faults COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/host/faults_test.py $<TARGET_FILE:rehearse>)
  set_tests_properties(host_faults PROPERTIES LABELS host TIMEOUT 1200 COST 150)
  add_test(NAME tidy COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/tidy_test.py)
  add_test(NAME folders COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/folders_test.py)
  add_test(NAME classes COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/classes_test.py)
  set_tests_properties(tidy folders classes PROPERTIES LABELS tidy)
  # What the *.md files say: commands, output, figures, paths. --update rewrites the output.
  add_test(NAME readme COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/docs/readme_test.py $<TARGET_FILE:rehearse>)
  set_tests_properties(readme PROPERTIES LABELS docs TIMEOUT 600 COST 200)
  # What others build on: the examples here, and with an installed copy in another folder.
  add_test(NAME examples COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/outside/examples_test.py $<TARGET_FILE_DIR:predict>)
  add_test(NAME install COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/outside/install_test.py ${PROJECT_BINARY_DIR}
           ${CMAKE_COMMAND} ${CMAKE_CXX_COMPILER})
  set_tests_properties(examples install PROPERTIES LABELS outside TIMEOUT 600)
  # Skipped without a page (tools/lab/build), playwright or Chromium.
  add_test(NAME browser_lab
           COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/browser/lab_test.py
                   ${PROJECT_BINARY_DIR}/lab/index.html $<TARGET_FILE:rehearse>)
  set_tests_properties(browser_lab PROPERTIES LABELS browser SKIP_RETURN_CODE 77 TIMEOUT 600
                       COST 180 ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/build-python")
  if(TARGET rehearse_cuda)
    # Another compiler allots other registers: only the pinned one is held to kernels/KERNELS.md.
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0 AND
       CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13.1)
      set(table --table)
    endif()
    add_test(NAME ptxas COMMAND Python3::Interpreter
             ${PROJECT_SOURCE_DIR}/tests/emulated_cuda/ptxas_test.py ${PROJECT_BINARY_DIR} ${table})
    set_tests_properties(ptxas PROPERTIES LABELS ptxas)
  endif()
  # Tests in other people's programs; each says in a line why it is skipped where they are missing.
  # tools/test puts Python's packages into a folder of their own.
  add_test(NAME browser_report COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/browser/report_test.py $<TARGET_FILE:rehearse>)
  add_test(NAME hta COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/tests/differential/hta_test.py $<TARGET_FILE:rehearse>)
  set_tests_properties(browser_report PROPERTIES LABELS browser)
  set_tests_properties(hta PROPERTIES LABELS differential)
  set_tests_properties(browser_report hta PROPERTIES SKIP_RETURN_CODE 77
                       ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/build-python")
endif()
