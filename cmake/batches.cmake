# Settings for a fast build of the analyzer and the tests. The shim and the queue never use them, because their objects
# are needed one by one: a linker script places them, and tests replace and compare them.
option(FORKSIGHT_UNITY_BUILD "Compile several files of the analyzer and of the tests at once" OFF)

# forksight_build_in_batches(FILES TARGET...): compiles FILES source files in one run of the compiler, which then reads
# their headers only once. A file whose object is replaced in a test has SKIP_UNITY_BUILD_INCLUSION.
#   Files that define the same name twice cannot be compiled together. Their target has set UNITY_BUILD to OFF before.
#   The optimised build has only the debug information that stacks need: functions and lines. With types and variables,
#   a third of the build time would be spent on them.
function(forksight_build_in_batches files)
  foreach(target IN LISTS ARGN)
    get_target_property(together ${target} UNITY_BUILD)
    if(NOT together STREQUAL OFF)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ${FORKSIGHT_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${files})
    endif()
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g1>)
  endforeach()
endfunction()

# forksight_compile_fast(TARGET...): without optimisation. It is for unit tests, which run for a moment: the compiler needs
# almost half of its time for optimising them.
function(forksight_compile_fast)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  endforeach()
endfunction()
