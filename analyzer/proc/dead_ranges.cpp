#include "proc/dead_ranges.hpp"

#include <algorithm>

#include "files/dead_places.hpp"
#include "proc/mappings.hpp"

namespace forksight::proc {

DeadRanges::DeadRanges(std::int32_t tid) {
  if (!files::has_dead_places()) return;
  for (const Mapping& mapping : read_mappings(tid)) {
    const bool is_of_dead_path = mapping.path.starts_with('/') && files::is_dead_path(mapping.path);
    if (is_of_dead_path || files::is_dead_device(mapping.device)) {
      ranges_.push_back({mapping.start, mapping.end});
    }
  }
}

std::size_t DeadRanges::clip(std::uint64_t address, std::size_t size) const {
  for (const Range& range : ranges_) {
    if (address >= range.end || address + size <= range.start) continue;
    size = address >= range.start ? 0 : static_cast<std::size_t>(range.start - address);
  }
  return size;
}

}  // namespace forksight::proc
