# The fuzz targets read input only: alone (REHEARSE_FUZZ), or by clang beside all that sanitizers
# look at. There the readers count for the fuzzer where they come along, which is what
# fuzzer-no-link stands for (that one wants precompiled headers of its own). What simulates is not
# read, and runs long in tests.
if(REHEARSE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(guides
      -fsanitize-coverage=edge,indirect-calls,trace-cmp,inline-8bit-counters,pc-table,stack-depth
      -fno-builtin-bcmp -fno-builtin-memcmp -fno-builtin-strcmp -fno-builtin-strncmp
      -fno-builtin-strstr -fno-builtin-memmem)
  foreach(reader sim_base sim_program sim_workload sim_scenario topology topology_files
          topology_formats strategies_schedules)
    target_compile_options(${reader} PRIVATE ${guides})
  endforeach()
elseif(NOT REHEARSE_FUZZ)
  return()
endif()

file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cpp)
add_custom_target(fuzzers)
foreach(source ${fuzz_sources})
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  target_link_libraries(${name} PRIVATE sim_program sim_scenario strategies_schedules)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endforeach()
# Of the tools, only tables of measurements are fuzzed.
target_sources(measured_fuzz PRIVATE tools/accuracy/measured_csv.cpp
               tools/accuracy/measured_cells.cpp tools/accuracy/measured_rows.cpp)
