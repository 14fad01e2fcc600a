#include "symbols/resync.hpp"

#include "symbols/call_site.hpp"

namespace forksight::symbols {
namespace {

// A scan is bounded: a hostile trace must not cost more than a large honest one.
constexpr std::size_t kMaxCandidates = 2000;

bool is_complete(const Walk& walk, bool is_cut) {
  if (walk.end == WalkEnd::kThreadStart) return true;
  return is_cut && walk.end == WalkEnd::kBytesEnd && walk.frames.size() > 2;
}

// Does the instruction before `caller` call, directly, the function that `callee` is in?
bool is_proved_caller(AddressSpace& space, const RawFrame& callee, const RawFrame& caller) {
  const AddressSpace::Place inner = space.locate(callee.lookup_address());
  const AddressSpace::Place outer = space.locate(caller.lookup_address());
  if (!inner || inner.binary != outer.binary || caller.is_exact) return false;
  const auto target = direct_call_target(outer.binary->elf(), outer.address + 1);
  if (!target) return false;
  const Symbol* called = inner.binary->symbols().find_function(*target);
  const Symbol* running = inner.binary->symbols().find_function(inner.address);
  return called != nullptr && running != nullptr && called->start == running->start && *target == called->start;
}

// Where the return address of the innermost frame is, or was: nothing below it belongs to its callers.
std::uint64_t first_slot(AddressSpace& space, const RawFrame& frame, Registers registers, const StackBytes& stack) {
  const AddressSpace::Place place = space.locate(frame.lookup_address());
  const bool has_caller = place && place.binary->cfi().step(place.address, registers, stack) == Step::kCaller;
  const std::uint64_t sp = has_caller && registers[kRsp] ? *registers[kRsp] : 0;
  return sp > frame.sp ? sp - 8 : frame.sp;
}

}  // namespace

Walk walk_frozen(AddressSpace& space, const Registers& innermost, const StackBytes& stack, bool is_cut) {
  Unwinder unwinder(space);
  Walk plain = unwinder.walk(innermost, stack, true);
  if (is_complete(plain, is_cut)) return plain;

  // Callers that the machine code confirms are kept.
  Walk result;
  result.frames.push_back(plain.frames.front());
  for (std::size_t i = 1; i < plain.frames.size() && is_proved_caller(space, plain.frames[i - 1], plain.frames[i]); ++i) {
    result.frames.push_back(plain.frames[i]);
  }
  std::uint64_t slot = result.frames.size() > 1 ? result.frames.back().sp
                                                : first_slot(space, result.frames.front(), innermost, stack);
  slot = (slot + 7) & ~std::uint64_t{7};
  std::size_t candidates = 0;
  for (; candidates < kMaxCandidates; slot += 8) {
    const auto word = stack.read(slot);
    if (!word) break;
    if (!unwinder.is_return_address(*word)) continue;
    ++candidates;
    Registers registers{};
    registers[kReturnAddress] = *word;
    registers[kRsp] = slot + 8;
    const auto below = stack.read(slot - 8);
    const bool has_frame_pointer = below && *below > slot && *below < stack.end() && *below % 8 == 0;
    for (const bool with_frame_pointer : {true, false}) {
      if (with_frame_pointer && !has_frame_pointer) continue;
      registers[kRbp] = with_frame_pointer ? below : std::nullopt;
      const Walk outer = unwinder.walk(registers, stack, true);
      if (!is_complete(outer, is_cut)) continue;
      for (RawFrame frame : outer.frames) {
        frame.is_approximate = true;
        result.frames.push_back(frame);
      }
      result.end = outer.end;
      return result;
    }
  }
  return result;
}

}  // namespace forksight::symbols
