# What `cmake --install` puts down: the program, what it reads, and what others build on it.
#
#   bin/rehearse                  include/rehearse/sim/…       share/rehearse/scenarios, catalog, …
#   lib/rehearse/lib*.a           lib/cmake/Rehearse/          share/doc/rehearse/
include(CMakePackageConfigHelpers)
set(package lib/cmake/Rehearse)
set(data share/rehearse)
set(docs share/doc/rehearse)

install(TARGETS rehearse RUNTIME DESTINATION bin)
if(TARGET rehearse-cuda)  # which the program starts from its own folder
  install(TARGETS rehearse-cuda RUNTIME DESTINATION bin OPTIONAL)
endif()

foreach(name simgrid mpi openblas hwloc httplib)  # where the program looks for its modules
  if(TARGET rehearse_${name})
    install(TARGETS rehearse_${name} LIBRARY DESTINATION lib/rehearse)
  endif()
endforeach()

# Commands, and what needs SimGrid or MPI, stay within the program.
get_property(folders GLOBAL PROPERTY rehearse_folders)
list(FILTER folders EXCLUDE REGEX "^(tools/.*|sim/simgrid|kernels/mpi)$")
set(libraries)
foreach(folder ${folders})
  string(REPLACE "/" "_" library ${folder})
  list(APPEND libraries ${library})
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.hpp)
  list(FILTER headers EXCLUDE REGEX "/(cuda_.*|xml_file)\\.hpp$")  # for our own sources
  install(FILES ${headers} DESTINATION include/rehearse/${folder})
endforeach()
target_include_directories(sim_base INTERFACE $<INSTALL_INTERFACE:include/rehearse>)
target_compile_features(sim_base INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)
set_target_properties(rehearse_core PROPERTIES EXPORT_NAME core)
set_target_properties(rehearse_kernels PROPERTIES EXPORT_NAME kernels)
install(TARGETS rehearse_core rehearse_kernels ${libraries} EXPORT RehearseTargets
        ARCHIVE DESTINATION lib/rehearse)
install(EXPORT RehearseTargets NAMESPACE Rehearse:: DESTINATION ${package})
configure_package_config_file(tools/lib/RehearseConfig.cmake.in RehearseConfig.cmake
                              INSTALL_DESTINATION ${package} PATH_VARS data)
write_basic_package_version_file(RehearseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RehearseConfig.cmake
              ${PROJECT_BINARY_DIR}/RehearseConfigVersion.cmake DESTINATION ${package})

# The program has machines, models and lessons within; these are to be read and changed.
install(DIRECTORY scenarios DESTINATION ${data})
install(DIRECTORY topology/catalog DESTINATION ${data} FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY tools/examples DESTINATION ${data})
install(FILES ${PROJECT_BINARY_DIR}/lab/index.html DESTINATION ${data}/lab OPTIONAL)

file(GLOB_RECURSE pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} sim/*.md topology/*.md
     strategies/*.md kernels/*.md tools/*.md)
foreach(page README.md CHANGELOG.md ${pages} tests/golden/figures/pipeline-zbh1.svg)
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${page} DESTINATION ${docs}/${folder})
endforeach()
