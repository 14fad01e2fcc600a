# Settings for a fast build of the analyzer and the tests. The shim and the queue never use them, because each of
# their source files needs an object of its own: a linker script places these objects, and tests replace and compare them.
option(FORKSIGHT_UNITY_BUILD
  "Compile several files of the analyzer and of the tests in one run of the compiler, with precompiled headers" OFF)

# forksight_build_in_batches(FILES TARGET...): compiles FILES source files in one run of the compiler, which then reads
# their headers only once. A file whose object is replaced in a test has SKIP_UNITY_BUILD_INCLUSION.
#   Files that define the same name cannot be compiled together. Their target sets UNITY_BUILD to OFF before this call.
function(forksight_build_in_batches files)
  foreach(target IN LISTS ARGN)
    get_target_property(together ${target} UNITY_BUILD)
    if(NOT together STREQUAL OFF)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ${FORKSIGHT_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${files})
    endif()
  endforeach()
endfunction()

# forksight_compile_for_stacks(TARGET...): the optimised build has only the debug information that stacks need: functions
# and lines. Information about types and variables would take a third of the build time.
function(forksight_compile_for_stacks)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g1>)
  endforeach()
endfunction()

# forksight_compile_lightly(TARGET...): compiles the targets with the optimisations that take little time, and for stacks.
# It is for code that mostly waits for the kernel. The compiler would need half as much again for -O2.
function(forksight_compile_lightly)
  forksight_compile_for_stacks(${ARGN})
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
  endforeach()
endfunction()

# forksight_compile_fast(TARGET...): compiles the targets without optimisation, and for stacks. It is for unit tests. They
# run only for a moment, and the compiler would need almost half of its time to optimise them.
function(forksight_compile_fast)
  forksight_compile_for_stacks(${ARGN})
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  endforeach()
endfunction()

# forksight_precompile_headers(NAME LIBRARIES HEADER...): makes the target NAME, which compiles the headers once. LIBRARIES
# are the targets that determine how the headers are compiled.
function(forksight_precompile_headers name libraries)
  # CMake compiles headers only in a target that has a source file.
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${empty})
  target_link_libraries(${name} PRIVATE ${libraries})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# forksight_use_precompiled_headers(NAME TARGET...): the targets read the headers that NAME has compiled. They must be
# compiled with the options of NAME.
function(forksight_use_precompiled_headers name)
  if(FORKSIGHT_UNITY_BUILD)
    foreach(target IN LISTS ARGN)
      target_precompile_headers(${target} REUSE_FROM ${name})
    endforeach()
  endif()
endfunction()
