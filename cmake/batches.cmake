# Settings for a fast build, for the analyzer and the tests. The shim and the queue never use them, because their
# objects are placed, replaced and compared one by one.
option(FORKSIGHT_UNITY_BUILD "Compile several files of the analyzer and of the tests at once" OFF)

# forksight_build_in_batches(FILES TARGET...): compiles that many files in one run of the compiler, which then reads
# their headers once. A file whose object a test replaces has SKIP_UNITY_BUILD_INCLUSION.
#   The optimised build keeps the debug information that a stack needs: functions and lines. Types and variables would
#   take a third of the time.
function(forksight_build_in_batches files)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ${FORKSIGHT_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${files})
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g1>)
  endforeach()
endfunction()
