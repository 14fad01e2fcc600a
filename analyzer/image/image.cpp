#include "image/image.hpp"

#include <algorithm>

namespace forksight::image {

const proc::Mapping* Image::mapping_of(std::uint64_t address) const {
  const auto after =
      std::upper_bound(mappings.begin(), mappings.end(), address,
                       [](std::uint64_t value, const proc::Mapping& mapping) { return value < mapping.start; });
  if (after == mappings.begin()) return nullptr;
  const proc::Mapping& mapping = *std::prev(after);
  return address < mapping.end ? &mapping : nullptr;
}

const Thread* Image::find_own(std::int32_t own) const {
  if (own == 0) return nullptr;
  const auto thread =
      std::find_if(threads.begin(), threads.end(), [&](const Thread& one) { return own_number(one) == own; });
  return thread != threads.end() ? &*thread : nullptr;
}

std::int32_t Image::tid_of(std::int32_t own) const {
  const Thread* const thread = find_own(own);
  return thread != nullptr ? thread->tid : own;
}

std::int32_t Image::own_number_of(std::int32_t tid) const {
  const auto thread = std::find_if(threads.begin(), threads.end(), [&](const Thread& one) { return one.tid == tid; });
  return thread != threads.end() ? own_number(*thread) : tid;
}

std::int32_t Image::own_pid() const { return own_number_of(pid); }

}  // namespace forksight::image
