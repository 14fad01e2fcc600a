# Most tests of this file use the library ipc_invariants, which reads the words of the segment and checks a queue after
# deaths.
add_library(ipc_invariants STATIC invariants.cpp)
target_link_libraries(ipc_invariants PUBLIC forksight::ipc PRIVATE forksight_warnings forksight_sanitize)
target_include_directories(ipc_invariants PUBLIC ${PROJECT_SOURCE_DIR}/ipc/src)

# step_kill kills a process after each change of the segment. Below, it is also built with sources that contain a planted
# fault, and must find each fault.
add_library(ipc_step_kill_main OBJECT step_kill.cpp)
target_link_libraries(ipc_step_kill_main PRIVATE ipc_invariants forksight_warnings forksight_sanitize)
add_executable(ipc_step_kill)
target_link_libraries(ipc_step_kill PRIVATE ipc_step_kill_main ipc_invariants forksight_sanitize)
# The steps are instructions. A program with sanitizers has many more of them, and with ThreadSanitizer the test would take
# hours. ThreadSanitizer would find nothing, because each process of the test has one thread.
if(NOT FORKSIGHT_SANITIZE STREQUAL "thread")
  set(limit 300)
  if(FORKSIGHT_SANITIZE)
    set(limit 1800)
  endif()
  add_test(NAME ipc.step_kill COMMAND ipc_step_kill)
  set_tests_properties(ipc.step_kill PROPERTIES TIMEOUT ${limit} LABELS unit PROCESSORS 3 COST 30)
  # With --every, step_kill kills a process after every instruction.
  add_test(NAME ipc.step_kill.every COMMAND ipc_step_kill --every)
  set_tests_properties(ipc.step_kill.every PROPERTIES TIMEOUT 7200 LABELS stress)
endif()

set(mutants_py ${CMAKE_CURRENT_SOURCE_DIR}/mutants.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutants_py})
execute_process(COMMAND ${FORKSIGHT_PYTHON} -B ${mutants_py} --list OUTPUT_VARIABLE mutants COMMAND_ERROR_IS_FATAL ANY)

# Compiles a source of the queue so that a test sees each access to a shared word. The programs that need the same source
# share the object ipc_KIND_SOURCE.
function(add_model_object kind source)
  add_library(ipc_${kind}_${source} OBJECT ${PROJECT_SOURCE_DIR}/ipc/src/${source}.cpp)
  target_compile_definitions(ipc_${kind}_${source} PRIVATE FORKSIGHT_IPC_MODEL)
  target_include_directories(ipc_${kind}_${source} PRIVATE ${PROJECT_SOURCE_DIR}/ipc/src ${PROJECT_SOURCE_DIR}/ipc/include)
  target_link_libraries(ipc_${kind}_${source} PRIVATE forksight_warnings)
endfunction()

# Tests the roles of members. Other members act before each access to a shared word.
set(role_sources failure member_lock members role_status process recovery ring waiting)
foreach(source IN LISTS role_sources)
  add_model_object(roles ${source})
  forksight_compile_fast(ipc_roles_${source})
endforeach()
list(TRANSFORM role_sources PREPEND ipc_roles_ OUTPUT_VARIABLE role_objects)
add_library(ipc_roles_main OBJECT roles_test.cpp)
target_compile_definitions(ipc_roles_main PRIVATE FORKSIGHT_IPC_MODEL)
target_include_directories(ipc_roles_main PRIVATE ${PROJECT_SOURCE_DIR}/ipc/src ${PROJECT_SOURCE_DIR}/ipc/include)
target_link_libraries(ipc_roles_main PRIVATE GTest::gtest_main forksight_warnings)
add_executable(ipc_roles_tests)
target_link_libraries(ipc_roles_tests PRIVATE ipc_roles_main ${role_objects} GTest::gtest_main)
gtest_discover_tests(ipc_roles_tests TEST_PREFIX ipc. NO_PRETTY_VALUES PROPERTIES PROCESSORS 2 TIMEOUT 60 LABELS unit)

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
    set_tests_properties(ipc.mutant.${name} PROPERTIES TIMEOUT 120 LABELS unit PROCESSORS 3 COST 3)
    continue()
  endif()
  if(found_by STREQUAL roles)
    get_filename_component(stem ${source} NAME_WE)
    set(objects ${role_objects})
    list(REMOVE_ITEM objects ipc_roles_${stem})
    add_executable(ipc_mutant_${name} ${mutated})
    target_compile_definitions(ipc_mutant_${name} PRIVATE FORKSIGHT_IPC_MODEL)
    target_include_directories(ipc_mutant_${name} PRIVATE ${PROJECT_SOURCE_DIR}/ipc/src ${PROJECT_SOURCE_DIR}/ipc/include)
    target_link_libraries(ipc_mutant_${name} PRIVATE ipc_roles_main ${objects} GTest::gtest_main forksight_warnings)
    add_test(NAME ipc.mutant.${name}
      COMMAND ${FORKSIGHT_PYTHON} -B ${PROJECT_SOURCE_DIR}/tests/support/must_fail.py
        "FAILED TEST" $<TARGET_FILE:ipc_mutant_${name}>)
    set_tests_properties(ipc.mutant.${name} PROPERTIES TIMEOUT 60 LABELS unit)
    continue()
  endif()
  # The linker reads the mutated file before the library. So the linker does not take the original file out of the
  # library.
  add_executable(ipc_mutant_${name} ${mutated})
  target_link_libraries(ipc_mutant_${name} PRIVATE ipc_step_kill_main ipc_invariants forksight_sanitize)
  add_test(NAME ipc.mutant.${name}
    COMMAND ${FORKSIGHT_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/expect_red.py $<TARGET_FILE:ipc_mutant_${name}> --first)
  # step_kill finds these faults late: each run needs 20 s of processor time.
  set(label unit)
  if(name MATCHES "^recovery_(never_parks|returns_withdrawn|tells_only_of_its_own)$")
    set(label stress)
  endif()
  set_tests_properties(ipc.mutant.${name} PROPERTIES TIMEOUT 300 LABELS ${label} PROCESSORS 3 COST 3)
endforeach()

# Tests the state machine of the ring without a segment, on words in the test's own memory.
add_executable(ipc_ring_tests ring_test.cpp)
target_link_libraries(ipc_ring_tests PRIVATE ipc_invariants GTest::gtest_main forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_ring_tests TEST_PREFIX ipc. NO_PRETTY_VALUES PROPERTIES PROCESSORS 2 TIMEOUT 60 LABELS unit)

# Tests which members are taken for alive and which for dead.
add_executable(ipc_liveness_tests cost_test.cpp member_lock_test.cpp liveness_test.cpp)
target_link_libraries(ipc_liveness_tests PRIVATE
  ipc_invariants GTest::gtest_main GTest::gmock forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_liveness_tests TEST_PREFIX ipc. NO_PRETTY_VALUES PROPERTIES PROCESSORS 2 TIMEOUT 60 LABELS unit)

# Tries every order of the steps of the state machine. The sources are compiled so that the test sees each step.
add_library(ipc_model_main OBJECT
  model_automaton.cpp model_check.cpp model_end.cpp model_explorer.cpp model_fiber.cpp model_world.cpp)
target_compile_definitions(ipc_model_main PUBLIC FORKSIGHT_IPC_MODEL)
target_include_directories(ipc_model_main PUBLIC ${PROJECT_SOURCE_DIR}/ipc/src ${PROJECT_SOURCE_DIR}/ipc/include)
target_link_libraries(ipc_model_main PUBLIC forksight_warnings)
# These sources are optimised in every build type, because the exploration takes too long without optimisation. Without
# optimisation the explorer is slow. The stack of the state machine then also contains more bytes that are not read
# again. So there are more states.
target_compile_options(ipc_model_main PUBLIC -O2)
foreach(source ring recovery)
  add_model_object(model ${source})
  target_compile_options(ipc_model_${source} PRIVATE -O2)
endforeach()
add_executable(ipc_model_check)
target_link_libraries(ipc_model_check PRIVATE ipc_model_main ipc_model_ring ipc_model_recovery)
add_test(NAME ipc.model_check COMMAND ipc_model_check)
set_tests_properties(ipc.model_check PROPERTIES TIMEOUT 300 LABELS unit PROCESSORS 3 COST 10)
# Checks the reductions of the exploration. The orders that a reduction leaves out must not lead to other ends.
add_test(NAME ipc.model_agrees COMMAND ipc_model_check --agree --second)
set_tests_properties(ipc.model_agrees PROPERTIES TIMEOUT 300 LABELS unit PROCESSORS 3 COST 10)
add_test(NAME ipc.model_agrees.all COMMAND ipc_model_check --agree)
set_tests_properties(ipc.model_agrees.all PROPERTIES TIMEOUT 600 LABELS stress)
add_test(NAME ipc.model_check.large COMMAND ipc_model_check --large)
add_test(NAME ipc.model_agrees.large COMMAND ipc_model_check --agree --large)
set_tests_properties(ipc.model_check.large ipc.model_agrees.large PROPERTIES TIMEOUT 7200 LABELS stress)
# Two faults break only late plans. Without these numbers, the tests of both faults explore all earlier plans, for 30 s
# and 13 s of processor time. If the list of plans changes, such a test fails. `--first` without `--plan` then prints one
# line for each plan until the broken plan, and so shows the new number.
set(broken_plan_of_recovery_overwrites_buffer 62)
set(broken_plan_of_recovery_returns_withdrawn 50)
foreach(mutant IN LISTS mutants)
  string(REGEX MATCH "^([a-z_]+)=(.*)[.]cpp=([a-z]+)$" ignored ${mutant})
  set(name ${CMAKE_MATCH_1})
  set(sources ring recovery)
  set(plan)
  if(DEFINED broken_plan_of_${name})
    set(plan --plan ${broken_plan_of_${name}})
  endif()
  if(CMAKE_MATCH_3 STREQUAL turns OR CMAKE_MATCH_3 STREQUAL roles)
    continue()
  endif()
  list(REMOVE_ITEM sources ${CMAKE_MATCH_2})
  add_executable(ipc_model_mutant_${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(ipc_model_mutant_${name} PRIVATE ipc_model_main ipc_model_${sources})
  add_test(NAME ipc.model_mutant.${name}
    COMMAND ${FORKSIGHT_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/expect_red.py $<TARGET_FILE:ipc_model_mutant_${name}> --first
            ${plan})
  set_tests_properties(ipc.model_mutant.${name} PROPERTIES TIMEOUT 600 LABELS unit PROCESSORS 3 COST 3)
endforeach()

# Kills many processes at random instants.
add_executable(ipc_soak soak.cpp)
target_link_libraries(ipc_soak PRIVATE ipc_invariants forksight_warnings forksight_sanitize)
add_test(NAME ipc.soak COMMAND ipc_soak --kills 200)
set_tests_properties(ipc.soak PROPERTIES TIMEOUT 300 LABELS unit PROCESSORS 3 COST 3)
add_test(NAME ipc.soak.long COMMAND ipc_soak --kills 10000)
set_tests_properties(ipc.soak.long PROPERTIES TIMEOUT 7200 LABELS stress)

# Tests calls on a segment into which a hostile process has written.
add_executable(ipc_hostile_tests hostile_test.cpp)
target_link_libraries(ipc_hostile_tests PRIVATE ipc_invariants GTest::gtest_main forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_hostile_tests TEST_PREFIX ipc. NO_PRETTY_VALUES PROPERTIES PROCESSORS 3 COST 3 TIMEOUT 300 LABELS fuzz)
add_test(NAME ipc.hostile_peer.long COMMAND ${CMAKE_COMMAND} -E env FORKSIGHT_IPC_EXECUTIONS=1000000
  $<TARGET_FILE:ipc_hostile_tests> --gtest_filter=Hostile.WordsWrittenAtRandomWhileOthersWork)
set_tests_properties(ipc.hostile_peer.long PROPERTIES TIMEOUT 7200 LABELS stress)

# Tests pid namespaces, pids that now belong to another process, and files that must not be trusted.
add_executable(ipc_strangers_tests strangers_test.cpp)
target_link_libraries(ipc_strangers_tests PRIVATE
  ipc_invariants GTest::gtest_main GTest::gmock forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_strangers_tests TEST_PREFIX ipc. NO_PRETTY_VALUES PROPERTIES PROCESSORS 2 TIMEOUT 60 LABELS unit)

# Tests names that users choose. Processes create and attach at the same time, and are killed meanwhile. gc() runs at the
# same time.
add_executable(ipc_rendezvous_tests rendezvous_test.cpp)
target_link_libraries(ipc_rendezvous_tests PRIVATE
  ipc_invariants GTest::gtest_main forksight_warnings forksight_sanitize)
gtest_discover_tests(ipc_rendezvous_tests TEST_PREFIX ipc. NO_PRETTY_VALUES PROPERTIES PROCESSORS 2 TIMEOUT 120 LABELS unit)

# Tests the order of messages. ring.cpp is compiled as for the model checker.
set_source_files_properties(${PROJECT_SOURCE_DIR}/ipc/src/ring.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
add_executable(ipc_order_tests order_test.cpp ${PROJECT_SOURCE_DIR}/ipc/src/ring.cpp)
target_compile_definitions(ipc_order_tests PRIVATE FORKSIGHT_IPC_MODEL)
target_include_directories(ipc_order_tests PRIVATE ${PROJECT_SOURCE_DIR}/ipc/src ${PROJECT_SOURCE_DIR}/ipc/include)
target_link_libraries(ipc_order_tests PRIVATE GTest::gtest_main forksight_warnings)
gtest_discover_tests(ipc_order_tests TEST_PREFIX ipc. NO_PRETTY_VALUES PROPERTIES PROCESSORS 2 TIMEOUT 60 LABELS unit)

# The fuzzer is for long runs that a person starts: fuzz_segment CORPUS.
if(FORKSIGHT_BUILD_FUZZERS)
  target_compile_options(forksight_ipc PRIVATE -fsanitize=fuzzer-no-link)
  add_executable(fuzz_segment fuzz_segment.cpp)
  target_compile_options(fuzz_segment PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_segment PRIVATE -fsanitize=fuzzer)
  target_link_libraries(fuzz_segment PRIVATE ipc_invariants forksight_warnings forksight_sanitize)
endif()

# Tests system calls that fail, and resources that are exhausted. These tests are not built with a sanitizer, because the
# sanitizer's own system calls would fail, too.
if(NOT FORKSIGHT_SANITIZE)
  add_executable(ipc_fault_tests errors_test.cpp faults_test.cpp)
  set_target_properties(ipc_fault_tests PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(ipc_fault_tests PRIVATE
    ipc_invariants GTest::gtest_main GTest::gmock forksight_warnings forksight_sanitize)
  gtest_discover_tests(ipc_fault_tests TEST_PREFIX ipc. NO_PRETTY_VALUES PROPERTIES PROCESSORS 2 TIMEOUT 300 LABELS unit)
endif()
