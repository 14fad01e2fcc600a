# Tests put libraries of the build into LD_PRELOAD. A path in LD_PRELOAD ends at a blank and at a colon, and the loader
# replaces "$LIB" in it. If the path of the build folder contains such a character, a link to the folder is made at a
# place whose path contains none, and the libraries are named through the link. The link is not removed.
set(FORKSIGHT_PRELOAD_FOLDER ${PROJECT_BINARY_DIR})
if(PROJECT_BINARY_DIR MATCHES "[ :$]")
  string(MD5 name ${PROJECT_BINARY_DIR})
  unset(FORKSIGHT_PRELOAD_FOLDER)
  foreach(place "$ENV{XDG_CACHE_HOME}" "$ENV{HOME}/.cache" "$ENV{TMPDIR}" "/tmp")
    if(place MATCHES "^/[^ :$]+$" AND NOT place STREQUAL "/.cache")
      file(MAKE_DIRECTORY ${place}/forksight-builds)
      file(CREATE_LINK ${PROJECT_BINARY_DIR} ${place}/forksight-builds/${name} RESULT failure SYMBOLIC)
      if(NOT failure)
        set(FORKSIGHT_PRELOAD_FOLDER ${place}/forksight-builds/${name})
        break()
      endif()
    endif()
  endforeach()
  if(NOT FORKSIGHT_PRELOAD_FOLDER)
    message(FATAL_ERROR "${PROJECT_BINARY_DIR}: LD_PRELOAD cannot name a path with a blank, a colon or a dollar sign, and no "
      "link to this folder can be made in the user's cache or in /tmp: build in another folder, or without tests "
      "(FORKSIGHT_BUILD_TESTS=OFF)")
  endif()
endif()

# forksight_preload_path(VARIABLE TARGET): sets VARIABLE to a path of the library TARGET that LD_PRELOAD can name.
function(forksight_preload_path variable target)
  set(${variable} "${FORKSIGHT_PRELOAD_FOLDER}/$<PATH:RELATIVE_PATH,$<TARGET_FILE:${target}>,${PROJECT_BINARY_DIR}>" PARENT_SCOPE)
endfunction()

forksight_preload_path(FORKSIGHT_SHIM forksight_preload)
