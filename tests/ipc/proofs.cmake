# What its proofs share: they look at the words themselves.
add_library(ipc_invariants STATIC invariants.cpp)
target_link_libraries(ipc_invariants PUBLIC forksight::ipc PRIVATE forksight_warnings forksight_sanitize)
target_include_directories(ipc_invariants PUBLIC ${PROJECT_SOURCE_DIR}/ipc/src)

# A death at each instruction; and the same with faults planted, each of which it must find.
add_library(ipc_step_kill_main OBJECT step_kill.cpp)
target_link_libraries(ipc_step_kill_main PRIVATE ipc_invariants forksight_warnings forksight_sanitize)
add_executable(ipc_step_kill)
target_link_libraries(ipc_step_kill PRIVATE ipc_step_kill_main ipc_invariants forksight_sanitize)
add_test(NAME ipc.step_kill COMMAND ipc_step_kill)
set_tests_properties(ipc.step_kill PROPERTIES TIMEOUT 300 LABELS unit)
# All of it.
add_test(NAME ipc.step_kill.every COMMAND ipc_step_kill --every)
set_tests_properties(ipc.step_kill.every PROPERTIES TIMEOUT 7200 LABELS stress)

set(mutants_py ${CMAKE_CURRENT_SOURCE_DIR}/mutants.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutants_py})
execute_process(COMMAND ${FORKSIGHT_PYTHON} -B ${mutants_py} --list OUTPUT_VARIABLE mutants COMMAND_ERROR_IS_FATAL ANY)
foreach(mutant IN LISTS mutants)
  string(REGEX MATCH "^([a-z_]+)=(.*)=([a-z]+)$" ignored ${mutant})
  set(name ${CMAKE_MATCH_1})
  set(found_by ${CMAKE_MATCH_3})
  set(source ${PROJECT_SOURCE_DIR}/ipc/src/${CMAKE_MATCH_2})
  set(mutated ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  add_custom_command(OUTPUT ${mutated} DEPENDS ${source} ${mutants_py}
    COMMAND ${FORKSIGHT_PYTHON} -B ${mutants_py} ${name} ${PROJECT_SOURCE_DIR}/ipc/src ${mutated})
  if(found_by STREQUAL orders)
    continue()
  endif()
  if(found_by STREQUAL turns)
    add_executable(ipc_mutant_${name} ${mutated} fairness_test.cpp)
    target_include_directories(ipc_mutant_${name} PRIVATE ${PROJECT_SOURCE_DIR}/ipc/src)
    target_link_libraries(ipc_mutant_${name} PRIVATE
      forksight::ipc GTest::gtest_main forksight_warnings forksight_sanitize)
    add_test(NAME ipc.mutant.${name}
      COMMAND ${FORKSIGHT_PYTHON} -B ${PROJECT_SOURCE_DIR}/tests/support/must_fail.py
        "of a share of" $<TARGET_FILE:ipc_mutant_${name}> --gtest_filter=*Fairness.Eight*)
    set_tests_properties(ipc.mutant.${name} PROPERTIES TIMEOUT 120 LABELS unit)
    continue()
  endif()
  # Before the library's own, which is then not taken out of its archive.
  add_executable(ipc_mutant_${name} ${mutated})
  target_link_libraries(ipc_mutant_${name} PRIVATE ipc_step_kill_main ipc_invariants forksight_sanitize)
  add_test(NAME ipc.mutant.${name}
    COMMAND ${FORKSIGHT_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/expect_red.py $<TARGET_FILE:ipc_mutant_${name}> --first)
  set_tests_properties(ipc.mutant.${name} PROPERTIES TIMEOUT 300 LABELS unit)
endforeach()

# The words themselves.
add_executable(ipc_ring_tests ring_test.cpp)
target_link_libraries(ipc_ring_tests PRIVATE ipc_invariants GTest::gtest_main forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_ring_tests TEST_PREFIX ipc. PROPERTIES TIMEOUT 60 LABELS unit)

# Who is alive and who is not.
add_executable(ipc_liveness_tests cost_test.cpp life_test.cpp liveness_test.cpp)
target_link_libraries(ipc_liveness_tests PRIVATE
  ipc_invariants GTest::gtest_main GTest::gmock forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_liveness_tests TEST_PREFIX ipc. PROPERTIES TIMEOUT 60 LABELS unit)

# Every order of the steps of the state machine, compiled so that each of them can be seen.
add_library(ipc_model_main OBJECT
  model_automaton.cpp model_check.cpp model_end.cpp model_explorer.cpp model_fiber.cpp model_world.cpp)
target_compile_definitions(ipc_model_main PUBLIC FORKSIGHT_IPC_MODEL)
target_include_directories(ipc_model_main PUBLIC ${PROJECT_SOURCE_DIR}/ipc/src ${PROJECT_SOURCE_DIR}/ipc/include)
target_link_libraries(ipc_model_main PUBLIC forksight_warnings)
add_executable(ipc_model_check ${PROJECT_SOURCE_DIR}/ipc/src/ring.cpp ${PROJECT_SOURCE_DIR}/ipc/src/recovery.cpp)
target_link_libraries(ipc_model_check PRIVATE ipc_model_main)
add_test(NAME ipc.model_check COMMAND ipc_model_check)
set_tests_properties(ipc.model_check PROPERTIES TIMEOUT 300 LABELS unit)
# What the exploration leaves out leads to no other end.
add_test(NAME ipc.model_agrees COMMAND ipc_model_check --agree)
set_tests_properties(ipc.model_agrees PROPERTIES TIMEOUT 300 LABELS unit)
add_test(NAME ipc.model_check.large COMMAND ipc_model_check --large)
add_test(NAME ipc.model_agrees.large COMMAND ipc_model_check --agree --large)
set_tests_properties(ipc.model_check.large ipc.model_agrees.large PROPERTIES TIMEOUT 7200 LABELS stress)
foreach(mutant IN LISTS mutants)
  string(REGEX MATCH "^([a-z_]+)=(.*)[.]cpp=([a-z]+)$" ignored ${mutant})
  set(name ${CMAKE_MATCH_1})
  set(sources ring recovery)
  if(CMAKE_MATCH_3 STREQUAL turns)
    continue()
  endif()
  list(REMOVE_ITEM sources ${CMAKE_MATCH_2})
  add_executable(ipc_model_mutant_${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp ${PROJECT_SOURCE_DIR}/ipc/src/${sources}.cpp)
  target_link_libraries(ipc_model_mutant_${name} PRIVATE ipc_model_main)
  add_test(NAME ipc.model_mutant.${name}
    COMMAND ${FORKSIGHT_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/expect_red.py $<TARGET_FILE:ipc_model_mutant_${name}> --first)
  set_tests_properties(ipc.model_mutant.${name} PROPERTIES TIMEOUT 300 LABELS unit)
endforeach()

# Deaths at random instants, of many.
add_executable(ipc_soak soak.cpp)
target_link_libraries(ipc_soak PRIVATE ipc_invariants forksight_warnings forksight_sanitize)
add_test(NAME ipc.soak COMMAND ipc_soak --kills 200)
set_tests_properties(ipc.soak PROPERTIES TIMEOUT 300 LABELS unit)
add_test(NAME ipc.soak.long COMMAND ipc_soak --kills 10000)
set_tests_properties(ipc.soak.long PROPERTIES TIMEOUT 7200 LABELS stress)

# A segment that somebody has written into.
add_executable(ipc_hostile_tests hostile_test.cpp)
target_link_libraries(ipc_hostile_tests PRIVATE ipc_invariants GTest::gtest_main forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_hostile_tests TEST_PREFIX ipc. PROPERTIES TIMEOUT 300 LABELS fuzz)
add_test(NAME ipc.hostile_peer.long COMMAND ${CMAKE_COMMAND} -E env FORKSIGHT_IPC_EXECUTIONS=1000000
  $<TARGET_FILE:ipc_hostile_tests> --gtest_filter=Hostile.WordsWrittenAtRandomWhileOthersWork)
set_tests_properties(ipc.hostile_peer.long PROPERTIES TIMEOUT 7200 LABELS stress)

# Namespaces, pids that were given on, files that are not to be trusted.
add_executable(ipc_strangers_tests strangers_test.cpp)
target_link_libraries(ipc_strangers_tests PRIVATE
  ipc_invariants GTest::gtest_main GTest::gmock forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_strangers_tests TEST_PREFIX ipc. PROPERTIES TIMEOUT 60 LABELS unit)

# The order of messages, by the same way of compiling.
add_executable(ipc_order_tests order_test.cpp ${PROJECT_SOURCE_DIR}/ipc/src/ring.cpp)
target_compile_definitions(ipc_order_tests PRIVATE FORKSIGHT_IPC_MODEL)
target_include_directories(ipc_order_tests PRIVATE ${PROJECT_SOURCE_DIR}/ipc/src ${PROJECT_SOURCE_DIR}/ipc/include)
target_link_libraries(ipc_order_tests PRIVATE GTest::gtest_main forksight_warnings)
gtest_discover_tests(ipc_order_tests TEST_PREFIX ipc. PROPERTIES TIMEOUT 60 LABELS unit)

# For long runs by hand: fuzz_segment CORPUS.
if(FORKSIGHT_BUILD_FUZZERS)
  target_compile_options(forksight_ipc PRIVATE -fsanitize=fuzzer-no-link)
  add_executable(fuzz_segment fuzz_segment.cpp)
  target_compile_options(fuzz_segment PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_segment PRIVATE -fsanitize=fuzzer)
  target_link_libraries(fuzz_segment PRIVATE ipc_invariants forksight_warnings forksight_sanitize)
endif()

# Calls that fail, and what there is none of. Not with a sanitizer, whose own calls would fail, too.
if(NOT FORKSIGHT_SANITIZE)
  add_executable(ipc_fault_tests errors_test.cpp faults_test.cpp)
  target_link_libraries(ipc_fault_tests PRIVATE
    ipc_invariants GTest::gtest_main GTest::gmock forksight_warnings forksight_sanitize)
  gtest_discover_tests(ipc_fault_tests TEST_PREFIX ipc. PROPERTIES TIMEOUT 300 LABELS unit)
endif()
