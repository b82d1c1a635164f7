# Under the thread sanitizer: only what has threads of its own, and no more of the rest than that
# needs.
find_package(GTest REQUIRED)
enable_testing()
include(GoogleTest)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/places/rehearse_places.hpp
     CONTENT "#define REHEARSE_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\"\n")
file(GLOB host_tests CONFIGURE_DEPENDS tests/host/*_test.cpp)
add_executable(host_tests ${host_tests} tests/equivalence/host_test.cpp
               tests/equivalence/server_test.cpp tests/support/interpreter.cpp
               tests/support/random_slices.cpp)
target_include_directories(host_tests PRIVATE ${PROJECT_BINARY_DIR}/places)
target_link_libraries(host_tests PRIVATE rehearse_kernels GTest::gtest_main)
gtest_discover_tests(host_tests NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES LABELS host)
