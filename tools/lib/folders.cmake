# One static library for each folder of sources: sim/base becomes sim_base. Sources are found, not
# listed: whoever adds one more collective adds one file.

# Parsing these took a third of every build; each file still includes what it uses.
set(common_headers <algorithm> <array> <cstdint> <map> <memory> <optional> <span> <string>
    <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
# The lab has no library for XML, and files that only its compiler reads; commands of --backend cuda
# are for programs that are linked with real or emulated GPUs.
set(not_in_the_lab "/(xml_file|io_graph|io_nccl_xml)")
set(cuda_commands tools/measure/cuda_backend.cpp tools/measure/cuda_bench.cpp
    tools/measure/cuda_calibrate.cpp)
set(compiled_apart "/(lab/(module|no_xml|fmt)|measure/cuda_(backend|bench|calibrate))\\.cpp$")

# rehearse_folder(FOLDER [ONE_BY_ONE] [USES FOLDER...] [LIBRARIES LIBRARY...]). A folder uses only
# those that were declared before it, so there is no cycle. Other people's headers stay in its own
# sources.
# ONE_BY_ONE: its sources give one name to different things, and are not compiled together.
function(rehearse_folder folder)
  cmake_parse_arguments(this "ONE_BY_ONE" "" "USES;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX ${compiled_apart})
  if(EMSCRIPTEN)
    list(FILTER sources EXCLUDE REGEX ${not_in_the_lab})
  endif()
  string(REPLACE "/" "_" name ${folder})
  add_library(${name} STATIC ${sources})
  set_property(GLOBAL APPEND PROPERTY rehearse_folders ${folder})
  # Who uses an installed copy has flags of their own, and no need for headers without a library.
  list(TRANSFORM this_LIBRARIES REPLACE "^nlohmann_json::.*$" "$<BUILD_INTERFACE:\\0>")
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:rehearse_flags> fmt::fmt
                        PRIVATE ${this_LIBRARIES})
  if(REHEARSE_UNITY AND NOT this_ONE_BY_ONE)
    # Half of the compiler's time is headers.
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
  endif()
  foreach(used ${this_USES})
    string(REPLACE "/" "_" used_name ${used})
    if(NOT TARGET ${used_name})
      message(FATAL_ERROR "${folder} uses ${used}, which is not declared before it")
    endif()
    target_link_libraries(${name} PUBLIC ${used_name})
  endforeach()
  if(name STREQUAL "sim_base")
    target_precompile_headers(${name} PRIVATE ${common_headers})
  else()
    target_precompile_headers(${name} REUSE_FROM sim_base)
  endif()
endfunction()

# A folder of commands: compiled as they are, with headers of their own.
function(rehearse_tools_folder folder)
  rehearse_folder(${folder} ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  target_compile_options(${name} PRIVATE ${quick_under_sanitizers})
endfunction()

# embed(TARGET FILES HEADER TYPE FUNCTION): the files become constants of the program.
function(embed target files header type function)
  set(source ${PROJECT_BINARY_DIR}/${function}_data.cpp)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} "-DFILES=${files}" -DHEADER=${header}
            -DTYPE=${type} -DFUNCTION=${function}
            -P ${PROJECT_SOURCE_DIR}/topology/catalog/embed.cmake
    DEPENDS ${files} topology/catalog/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
