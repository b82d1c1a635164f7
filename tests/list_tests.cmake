# How CTest learns of tests: each by its name; under the sanitizers, where a process takes a third
# of a second to begin, four processes for a folder.
function(list_tests label)
  if(NOT REHEARSE_SANITIZE)
    gtest_discover_tests(${label}_tests NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${label})
    return()
  endif()
  set(environment)
  if(label STREQUAL "differential")
    # A process of SimGrid is slow to fork there; random programs cover the same code.
    set(environment GTEST_FILTER=-*CatalogMachine*)
  elseif(label STREQUAL "emulated_cuda")
    # Programs with a mistake leave their streams behind, as a crash does.
    set(environment ASAN_OPTIONS=detect_leaks=0)
  endif()
  foreach(part RANGE 3)
    add_test(NAME ${label}_${part} COMMAND ${label}_tests --gtest_brief=1)
    set_tests_properties(${label}_${part} PROPERTIES LABELS ${label} TIMEOUT 1500 ENVIRONMENT
      "${environment};GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${part}")
  endforeach()
endfunction()
