// docs/hazards/*.md as they were when this was built: no file is needed at run time.
#pragma once

#include <span>
#include <string_view>

namespace forksight {

struct HazardPage {
  std::string_view slug;
  std::string_view text;
};

std::span<const HazardPage> hazard_pages();

}  // namespace forksight
