// Pages of docs/, which the build copies into the executable. So no file is needed at run time.
#pragma once

#include <span>
#include <string_view>

namespace forksight {

struct Page {
  std::string_view name;  // the name of the page's file, without the extension
  std::string_view text;
};

std::span<const Page> hazard_pages();   // docs/hazards/*.md
std::span<const Page> symptom_pages();  // docs/symptoms.md alone

}  // namespace forksight
