# cmake -D OUTPUT=FILE.cpp -D PAGES=A.md|B.md -P embed_pages.cmake: the pages as one C++ source.
string(REPLACE "|" ";" pages "${PAGES}")
set(entries "")
foreach(page IN LISTS pages)
  get_filename_component(slug ${page} NAME_WE)
  file(READ ${page} text)
  if(text MATCHES "\\)PAGE\"")
    message(FATAL_ERROR "${page}: holds the end of a raw string")
  endif()
  string(APPEND entries "    {\"${slug}\", R\"PAGE(${text})PAGE\"},\n")
endforeach()
file(WRITE ${OUTPUT}.new "// Generated from docs/hazards by embed_pages.cmake.
#include \"command/hazard_pages.hpp\"

namespace forksight {

namespace {

constexpr HazardPage kPages[] = {
${entries}};

}  // namespace

std::span<const HazardPage> hazard_pages() { return kPages; }

}  // namespace forksight
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
