#include "image/stacks.hpp"

#include <algorithm>

namespace forksight::image {
namespace {

constexpr std::size_t kFirstBytes = 64U << 10U;  // more than most stacks have
constexpr std::size_t kMaxBytes = 8U << 20U;

}  // namespace

Stacks::Stacks(const Image& image)
    : image_(image),
      any_word_([this](std::uint64_t address) { return image_.memory->value<std::uint64_t>(address); }),
      symbolizer_(image.modules) {}

std::vector<std::byte> Stacks::read_stack(std::uint64_t sp, std::size_t limit) const {
  const proc::Mapping* mapping = image_.mapping_of(sp);
  if (mapping == nullptr) return {};
  return image_.memory->bytes(sp, std::min<std::uint64_t>(mapping->end - sp, limit));
}

model::Stack Stacks::of(const Thread& thread) {
  if (thread.has_ended || !thread.registers || !(*thread.registers)[symbols::kRsp]) return {};
  const std::uint64_t sp = *(*thread.registers)[symbols::kRsp];
  if (!thread.stack.empty()) {
    return symbolizer_.unwind_thread(*thread.registers, {sp, thread.stack, &any_word_});
  }
  const std::vector<std::byte> bytes = read_stack(sp, kFirstBytes);
  return symbolizer_.unwind_thread(*thread.registers, {sp, bytes, &any_word_});
}

model::Stack Stacks::at(std::uint64_t pc, std::uint64_t sp, std::uint64_t fp, bool is_frozen) {
  model::Stack stack;
  for (const std::size_t limit : {kFirstBytes, kMaxBytes}) {
    const std::vector<std::byte> bytes = read_stack(sp, limit);
    stack = symbolizer_.unwind({pc, sp, fp, bytes, false, is_frozen});
    if (!stack.cut || bytes.size() < limit) break;
  }
  return stack;
}

}  // namespace forksight::image
