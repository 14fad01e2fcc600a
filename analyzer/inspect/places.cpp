#include "inspect/places.hpp"

#include <fmt/core.h>

namespace forksight::inspect {
namespace {

const image::Thread* find_stack_owner(const image::Image& image, const proc::Mapping& mapping) {
  for (const image::Thread& thread : image.threads) {
    if (!thread.registers || !(*thread.registers)[symbols::kRsp]) continue;
    const std::uint64_t sp = *(*thread.registers)[symbols::kRsp];
    if (sp >= mapping.start && sp < mapping.end) return &thread;
  }
  return nullptr;
}

}  // namespace

std::string describe_place(const image::Image& image, std::uint64_t address) {
  const proc::Mapping* const mapping = image.mapping_of(address);
  if (mapping == nullptr) return {};
  if (mapping->path == "[heap]") return "heap";
  if (const image::Thread* const owner = find_stack_owner(image, *mapping)) {
    return fmt::format("stack of thread {}", owner->tid);
  }
  // Private anonymous memory counts as heap. malloc() maps such memory for large blocks, and for the arenas of all
  // threads except the first.
  if (mapping->path.empty()) return mapping->shared ? "anonymous shared memory" : "heap";
  if (mapping->path.front() != '/') return {};
  return fmt::format("{}+{:#x}", mapping->path, address - mapping->start + mapping->offset);
}

}  // namespace forksight::inspect
