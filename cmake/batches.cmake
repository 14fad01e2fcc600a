# Settings for a fast build of the analyzer and the tests. The shim and the queue never use them, because each of
# their source files needs an object of its own: a linker script places these objects, and tests replace and compare them.
option(FORKSIGHT_UNITY_BUILD "Compile several files of the analyzer and of the tests in one run of the compiler" OFF)

# forksight_build_in_batches(FILES TARGET...): compiles FILES source files in one run of the compiler, which then reads
# their headers only once. A file whose object is replaced in a test has SKIP_UNITY_BUILD_INCLUSION.
#   Files that define the same name cannot be compiled together. Their target sets UNITY_BUILD to OFF before this call.
#   The optimised build has only the debug information that stacks need: functions and lines. Information about types and
#   variables would take a third of the build time.
function(forksight_build_in_batches files)
  foreach(target IN LISTS ARGN)
    get_target_property(together ${target} UNITY_BUILD)
    if(NOT together STREQUAL OFF)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ${FORKSIGHT_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${files})
    endif()
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g1>)
  endforeach()
endfunction()

# forksight_compile_fast(TARGET...): compiles the targets without optimisation. It is for unit tests. They run only for a
# moment, and the compiler would need almost half of its time to optimise them.
function(forksight_compile_fast)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  endforeach()
endfunction()
