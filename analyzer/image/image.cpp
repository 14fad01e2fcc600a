#include "image/image.hpp"

#include <algorithm>

namespace forksight::image {

const watch::Mapping* Image::mapping_of(std::uint64_t address) const {
  const auto after =
      std::upper_bound(mappings.begin(), mappings.end(), address,
                       [](std::uint64_t value, const watch::Mapping& mapping) { return value < mapping.start; });
  if (after == mappings.begin()) return nullptr;
  const watch::Mapping& mapping = *std::prev(after);
  return address < mapping.end ? &mapping : nullptr;
}

}  // namespace forksight::image
