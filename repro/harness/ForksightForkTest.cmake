# forksight_add_fork_test(TARGET [SCENES NAME ...] [KNOWN NAME ...] [TIMEOUT SECONDS] [OPTIONS ...])
#   TARGET is an executable that is built from <forksight/fork_test.h>, a function that uses a library, and
#   FORKSIGHT_FORK_TEST().
#   Adds one test for each scene, TARGET.fork.SCENE: forksight runs the scene and prints what it found. The label of
#   these tests is `fork`.
#     SCENES   the scenes to run; by default all
#     KNOWN    scenes that fail today. If such a scene succeeds, its test fails, so that you correct this list
#     TIMEOUT  the time limit of a scene, in seconds; 60 by default
#     OPTIONS  options of `forksight suite check`
set(FORKSIGHT_FORK_TEST_SCENES main child-thread thread idle-thread busy-thread again grandchild exit exec)

function(forksight_add_fork_test TARGET)
  cmake_parse_arguments(PARSE_ARGV 1 TEST "" "TIMEOUT" "SCENES;KNOWN;OPTIONS")
  if(NOT TARGET ${TARGET})
    message(FATAL_ERROR "forksight_add_fork_test: ${TARGET} is not a target")
  endif()
  if(TEST_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "forksight_add_fork_test(${TARGET}): ${TEST_UNPARSED_ARGUMENTS}: the keywords are SCENES, KNOWN, TIMEOUT, OPTIONS")
  endif()
  if(NOT TEST_SCENES)
    set(TEST_SCENES ${FORKSIGHT_FORK_TEST_SCENES})
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 60)
  endif()
  foreach(scene IN LISTS TEST_SCENES TEST_KNOWN)
    if(NOT scene IN_LIST FORKSIGHT_FORK_TEST_SCENES)
      message(FATAL_ERROR "forksight_add_fork_test(${TARGET}): no scene ${scene}: there are ${FORKSIGHT_FORK_TEST_SCENES}")
    endif()
  endforeach()
  target_link_libraries(${TARGET} PRIVATE forksight::fork_test)
  math(EXPR limit "${TEST_TIMEOUT} + 30")
  foreach(scene IN LISTS TEST_SCENES)
    set(known "")
    if(scene IN_LIST TEST_KNOWN)
      set(known --known ${scene})
    endif()
    add_test(NAME ${TARGET}.fork.${scene}
      COMMAND forksight::program suite check --scene ${scene} ${known} --timeout ${TEST_TIMEOUT} ${TEST_OPTIONS} -- $<TARGET_FILE:${TARGET}>)
    set_tests_properties(${TARGET}.fork.${scene} PROPERTIES LABELS fork TIMEOUT ${limit})
  endforeach()
endfunction()
