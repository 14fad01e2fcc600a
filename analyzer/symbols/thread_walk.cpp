#include "symbols/thread_walk.hpp"

#include <algorithm>
#include <utility>

#include "symbols/call_graph.hpp"
#include "symbols/frozen.hpp"

namespace forksight::symbols {
namespace {

constexpr std::uint64_t kFirstPage = 4096;
constexpr int kMaxRepairs = 64;  // the most frames for which the size of the frame replaces an unknown rbp

// Ranks walks. A walk that reached the start of the thread is better than a walk that did not. Otherwise the walk with
// more frames is better.
auto worth(const Walk& walk) { return std::pair(walk.end == WalkEnd::kThreadStart, walk.frames.size()); }

void append(Walk& walk, Walk outer) {
  for (RawFrame& frame : outer.frames) {
    frame.is_approximate = true;
    walk.frames.push_back(frame);
  }
  walk.end = outer.end;
}

// Finds the callers of `frame`. nullopt if the code does not show the size of the frame, or if no caller was found.
std::optional<Walk> find_callers(AddressSpace& space, Unwinder& unwinder, const RawFrame& frame,
                                 const StackBytes& stack) {
  const auto function = function_of(space, frame);
  if (!function) return std::nullopt;
  std::optional<Walk> best;
  for (const std::uint64_t depth : frame_depths(*function, frame.pc - function->module->bias)) {
    if (depth < 16) continue;
    Registers caller{};
    caller[kRsp] = frame.sp + depth;
    caller[kReturnAddress] = stack.read(frame.sp + depth - 8);
    caller[kRbp] = stack.read(frame.sp + depth - 16);  // a function with a frame pointer saves rbp first
    if (!caller[kReturnAddress] || !unwinder.is_return_address(*caller[kReturnAddress])) continue;
    Walk outer = unwinder.walk(caller, stack, true);
    if (!best || worth(outer) > worth(*best)) best = std::move(outer);
  }
  return best;
}

// `found` comes from a search of the stack, so its frames are marked as approximate. If the innermost frames are the
// same in `plain`, replaces them by those of `plain`, which are more certain.
void keep_certainty(Walk& found, const Walk& plain) {
  for (std::size_t i = 0; i < std::min(found.frames.size(), plain.frames.size()); ++i) {
    if (found.frames[i].pc != plain.frames[i].pc || found.frames[i].sp != plain.frames[i].sp) return;
    found.frames[i] = plain.frames[i];
  }
}

}  // namespace

Walk walk_thread(AddressSpace& space, const Registers& innermost, const StackBytes& stack) {
  Unwinder unwinder(space);
  const std::uint64_t pc = innermost[kReturnAddress].value_or(0);
  const std::uint64_t sp = innermost[kRsp].value_or(0);
  if (pc < kFirstPage) {
    // The thread called a null pointer. The call has pushed the return address, and no function has changed the stack
    // since.
    Walk walk{{{pc, sp, true, false, false}}, WalkEnd::kLost};
    Registers caller = innermost;
    caller[kReturnAddress] = stack.read(sp);
    caller[kRsp] = sp + 8;
    if (!caller[kReturnAddress] || !unwinder.is_return_address(*caller[kReturnAddress])) return walk;
    const Walk outer = unwinder.walk(caller, stack, false);
    walk.frames.insert(walk.frames.end(), outer.frames.begin(), outer.frames.end());
    walk.end = outer.end;
    return walk;
  }

  Walk walk = unwinder.walk(innermost, stack, false, true);
  for (int repairs = 0; walk.end == WalkEnd::kLost && repairs < kMaxRepairs; ++repairs) {
    auto outer = find_callers(space, unwinder, walk.frames.back(), stack);
    if (!outer) break;
    append(walk, std::move(*outer));
  }
  if (walk.end == WalkEnd::kLost && !innermost[kRbp]) {
    Walk found = walk_frozen(space, innermost, {stack.start, stack.bytes}, false);
    if (worth(found) > worth(walk)) {
      keep_certainty(found, walk);
      return found;
    }
  }
  return walk;
}

}  // namespace forksight::symbols
