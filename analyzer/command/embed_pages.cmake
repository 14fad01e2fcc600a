# cmake -D OUTPUT=FILE.cpp -D FUNCTION=NAME -D PAGES=A.md|B.md -P embed_pages.cmake: writes the pages into one C++
# source.
string(REPLACE "|" ";" pages "${PAGES}")
set(entries "")
foreach(page IN LISTS pages)
  get_filename_component(name ${page} NAME_WE)
  file(READ ${page} text)
  if(text MATCHES "\\)PAGE\"")
    message(FATAL_ERROR "${page}: holds the end of a raw string")
  endif()
  string(APPEND entries "    {\"${name}\", R\"PAGE(${text})PAGE\"},\n")
endforeach()
file(WRITE ${OUTPUT}.new "// Generated from docs by embed_pages.cmake.
#include \"command/pages.hpp\"

namespace forksight {

namespace {

constexpr Page kPages[] = {
${entries}};

}  // namespace

std::span<const Page> ${FUNCTION}() { return kPages; }

}  // namespace forksight
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
