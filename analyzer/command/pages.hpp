// Pages of docs/ at the time of the build: no file is needed at run time.
#pragma once

#include <span>
#include <string_view>

namespace forksight {

struct Page {
  std::string_view name;  // of its file, without the ending
  std::string_view text;
};

std::span<const Page> hazard_pages();   // docs/hazards/*.md
std::span<const Page> symptom_pages();  // docs/symptoms.md alone

}  // namespace forksight
