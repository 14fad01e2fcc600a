# An interface target with the compiler warnings for all code of this project.
add_library(forksight_warnings INTERFACE)
target_compile_options(forksight_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-align -Wformat=2 -Wundef
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast>)
if(FORKSIGHT_WERROR)
  target_compile_options(forksight_warnings INTERFACE -Werror)
endif()

# An interface target with the sanitizers, for everything but the shim and the hazard suite.
add_library(forksight_sanitize INTERFACE)
if(FORKSIGHT_SANITIZE)
  target_compile_options(forksight_sanitize INTERFACE -fsanitize=${FORKSIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(forksight_sanitize INTERFACE -fsanitize=${FORKSIGHT_SANITIZE})
endif()
