#include "symbols/last_calls.hpp"

#include <algorithm>
#include <vector>

#include "symbols/call_graph.hpp"

namespace forksight::symbols {
namespace {

constexpr std::uint64_t kSlotBytes = 8;
constexpr std::uint64_t kLargestFrame = 64U << 10U;
constexpr std::size_t kMostCalls = 256;

// A return address, and the place on the stack that contains it.
struct Call {
  std::uint64_t pc = 0;
  std::uint64_t slot = 0;
  RawFrame frame() const { return {pc, slot + kSlotBytes, false, true, false}; }
};

class LastCalls {
 public:
  LastCalls(AddressSpace& space, const StackBytes& stack) : space_(space), stack_(stack), unwinder_(space) {}

  // Finds the call that the outermost function made. The outermost function has no caller.
  std::optional<Call> find_first() {
    for (std::uint64_t slot = stack_.end() & ~(kSlotBytes - 1); slot >= stack_.start + kSlotBytes;) {
      slot -= kSlotBytes;
      const auto pc = return_address_at(slot);
      if (!pc) continue;
      const AddressSpace::Place place = space_.locate(*pc - 1);
      Registers registers{};
      registers[kRsp] = slot + kSlotBytes;
      registers[kReturnAddress] = *pc;
      if (place.binary->cfi().step(place.address, registers, stack_) == Step::kOutermost) return Call{*pc, slot};
    }
    return std::nullopt;
  }

  // Finds the last call that was made by the function that `outer` called.
  std::optional<Call> find_next(const Call& outer) {
    std::vector<Call> proved;
    std::vector<Call> possible;
    const std::uint64_t lowest = std::max(stack_.start, outer.slot - std::min(outer.slot, kLargestFrame));
    for (std::uint64_t slot = outer.slot; slot >= lowest + kSlotBytes;) {
      slot -= kSlotBytes;
      const auto pc = return_address_at(slot);
      if (!pc || !has_frame_below(*pc, slot, outer)) continue;
      const Call inner{*pc, slot};
      const Link link = check_link(space_, inner.frame(), outer.frame());
      if (link == Link::kProved) proved.push_back(inner);
      if (link == Link::kPossible) possible.push_back(inner);
    }
    // `outer` is a call by pointer here. If the same code also calls the function directly, the return address on the
    // stack may be left from that direct call.
    if (possible.size() > 1) {
      std::erase_if(possible, [&](const Call& inner) { return is_called_directly(inner, outer); });
    }
    const std::vector<Call>& fitting = proved.empty() ? possible : proved;
    return fitting.size() == 1 ? std::optional(fitting.front()) : std::nullopt;
  }

 private:
  std::optional<std::uint64_t> return_address_at(std::uint64_t slot) {
    const auto word = stack_.read(slot);
    return word && unwinder_.is_return_address(*word) ? word : std::nullopt;
  }

  // True if the frame of the function that made the call at `slot` reaches up to the return address of `outer`.
  bool has_frame_below(std::uint64_t pc, std::uint64_t slot, const Call& outer) {
    const auto function = function_of(space_, {pc, slot + kSlotBytes, false, false, false});
    if (!function) return false;
    const std::uint64_t expected = outer.slot + kSlotBytes - (slot + kSlotBytes);
    const std::vector<std::uint64_t> depths = frame_depths(*function, pc - function->module->bias);
    return std::ranges::find(depths, expected) != depths.end();
  }

  // True if the function that made the call `outer` also calls the function of `inner` directly.
  bool is_called_directly(const Call& inner, const Call& outer) {
    const auto callee = function_of(space_, inner.frame());
    const auto caller = function_of(space_, outer.frame());
    if (!callee || !caller) return false;
    const auto& branches = caller->binary->code().facts(caller->range).branches;
    return std::ranges::any_of(branches, [&](const Branch& branch) {
      return branch.is_call && leads_into(*caller, branch, *callee) == Link::kProved;
    });
  }

  AddressSpace& space_;
  const StackBytes& stack_;
  Unwinder unwinder_;
};

// Returns the frames of the functions that made the calls, each with the registers that the stack shows.
KnownWalk walk_of(AddressSpace& space, const StackBytes& stack, const std::vector<Call>& calls) {
  KnownWalk known;
  known.walk.end = WalkEnd::kThreadStart;
  Registers registers{};
  for (std::size_t i = calls.size(); i-- > 0;) {
    registers[kReturnAddress] = calls[i].pc;
    registers[kRsp] = calls[i].slot + kSlotBytes;
    const AddressSpace::Place place = space.locate(calls[i].pc - 1);
    Cfi& cfi = place.binary->cfi();
    // A function with a frame pointer saves the rbp of its caller right below the return address.
    if (i > 0 && !cfi.stack_depth(place.address)) registers[kRbp] = calls[i - 1].slot - kSlotBytes;
    known.walk.frames.push_back(calls[i].frame());
    known.registers.push_back(registers);
    const bool is_stepped = i > 0 && cfi.step(place.address, registers, stack) == Step::kCaller;
    if (!is_stepped || registers[kReturnAddress] != calls[i - 1].pc) registers = Registers{};
  }
  return known;
}

}  // namespace

std::optional<KnownWalk> find_last_calls(AddressSpace& space, const StackBytes& stack) {
  LastCalls last(space, stack);
  const auto first = last.find_first();
  if (!first) return std::nullopt;
  std::vector<Call> calls{*first};
  while (calls.size() < kMostCalls) {
    const auto next = last.find_next(calls.back());
    if (!next) break;
    calls.push_back(*next);
  }
  return walk_of(space, stack, calls);
}

}  // namespace forksight::symbols
