# The portable command: `forksight` without any dynamic library. It needs no loader and no library of the system, so one
# file runs on every Linux, whatever its libc is. It consists of the same objects as the usual command.
#
# Debian has no static archives of {fmt} and Zydis. They are compiled from the sources of its packages, which
# `./bootstrap` unpacks into build/packages.
option(FORKSIGHT_PORTABLE "Install a command that is linked statically, and nothing that names a folder of the build" OFF)
set(FORKSIGHT_SOURCES ${PROJECT_SOURCE_DIR}/build/packages CACHE PATH "Where fmtlib and zydis are, unpacked source packages")

set(FORKSIGHT_HAS_STATIC OFF)
if(EXISTS ${FORKSIGHT_SOURCES}/fmtlib/src/format.cc AND EXISTS ${FORKSIGHT_SOURCES}/zydis/src/Decoder.c AND NOT FORKSIGHT_SANITIZE)
  set(FORKSIGHT_HAS_STATIC ON)
elseif(FORKSIGHT_PORTABLE)
  message(FATAL_ERROR "FORKSIGHT_PORTABLE needs the sources of fmtlib and zydis in ${FORKSIGHT_SOURCES}: ./bootstrap package "
    "puts them there. FORKSIGHT_SANITIZE must be empty")
endif()

if(FORKSIGHT_PORTABLE)
  # The packages of two builds must be equal, wherever they were built. So no path of the build may be in the binaries
  # or in their debug information, from which the build id is computed.
  add_compile_options(-ffile-prefix-map=${PROJECT_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  add_link_options(LINKER:--build-id=sha1)
endif()

# forksight_add_static_command(TARGET MAIN LIBRARY...): adds a program that is linked statically. It consists of the objects
# of the program MAIN, of our static libraries LIBRARY..., and of static archives of other libraries.
function(forksight_add_static_command target main)
  foreach(name dw elf z bz2 lzma)
    find_library(FORKSIGHT_STATIC_${name} NAMES lib${name}.a REQUIRED)
    list(APPEND archives ${FORKSIGHT_STATIC_${name}})
  endforeach()

  set(fmt ${FORKSIGHT_SOURCES}/fmtlib)
  add_library(forksight_fmt STATIC ${fmt}/src/format.cc ${fmt}/src/os.cc)
  target_include_directories(forksight_fmt SYSTEM PRIVATE ${fmt}/include)
  set(zydis ${FORKSIGHT_SOURCES}/zydis)
  add_library(forksight_zydis STATIC ${zydis}/src/Decoder.c ${zydis}/src/DecoderData.c ${zydis}/src/SharedData.c
    ${zydis}/src/Register.c ${zydis}/src/MetaInfo.c ${zydis}/src/Mnemonic.c ${zydis}/src/Utils.c)
  target_include_directories(forksight_zydis SYSTEM PRIVATE ${zydis}/include ${zydis}/src)
  target_compile_definitions(forksight_zydis PRIVATE ZYDIS_STATIC_BUILD ZYCORE_STATIC_BUILD)

  # no_loading.cpp is linked as an object and not from an archive, so that its functions come before those of libc.
  add_executable(${target} $<TARGET_OBJECTS:${main}> ${PROJECT_SOURCE_DIR}/packaging/no_loading.cpp)
  list(TRANSFORM ARGN REPLACE ".+" "$<TARGET_FILE:\\0>" OUTPUT_VARIABLE files)
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${files} -Wl,--end-group forksight_fmt forksight_zydis ${archives})
  # The archives contain much that the command never calls: parts of libstdc++, other processors' instructions in libdw.
  target_link_options(${target} PRIVATE -static-pie LINKER:--gc-sections)
  add_dependencies(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${files}")
endfunction()

# forksight_link_portably(TARGET): links a shared library of ours so that it loads with glibc 2.28, and needs no libstdc++ and
# no libgcc of the system. packaging/old_glibc.cpp defines the functions that glibc 2.28 does not have, has in another
# library, or has only under another version name.
function(forksight_link_portably target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/packaging/old_glibc.cpp)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:--exclude-libs,ALL)
  # Before glibc 2.34 the functions for threads are in a library of their own, libpthread. The stand-in for this library is
  # given as an option. If it were a library of the target, CMake would let the build's library load it.
  set(pthread forksight_old_libpthread)
  set(map ${PROJECT_SOURCE_DIR}/packaging/old_libpthread.map)
  add_library(${pthread} SHARED ${PROJECT_SOURCE_DIR}/packaging/old_libpthread.c)
  target_compile_options(${pthread} PRIVATE -fno-builtin)
  target_link_options(${pthread} PRIVATE -nostdlib LINKER:-soname,libpthread.so.0 LINKER:--version-script=${map})
  set_target_properties(${pthread} PROPERTIES NO_SONAME ON LINK_DEPENDS ${map} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/old_glibc)
  target_link_options(${target} PRIVATE LINKER:--no-as-needed $<TARGET_FILE:${pthread}> LINKER:--as-needed)
  add_dependencies(${target} ${pthread})
endfunction()
