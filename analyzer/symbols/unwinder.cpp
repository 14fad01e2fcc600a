#include "symbols/unwinder.hpp"

namespace forksight::symbols {
namespace {

// A deeper recursion is cut, because a report shows at most a screen of it.
constexpr std::size_t kMaxFrames = 2048;

// Steps from a frame to its caller by the chain of frame pointers, for code without call frame information.
Step step_by_frame_pointer(Registers& registers, const StackBytes& stack) {
  const auto fp = registers[kRbp];
  const auto sp = registers[kRsp];
  if (!fp || !sp || *fp < *sp || *fp % 8 != 0) return Step::kUnknown;
  const auto caller_fp = stack.read(*fp);
  const auto caller_pc = stack.read(*fp + 8);
  if (!caller_fp || !caller_pc) return *fp >= stack.end() - 8 ? Step::kBeyondBytes : Step::kUnknown;
  Registers caller{};
  caller[kRbp] = caller_fp;
  caller[kRsp] = *fp + 16;
  caller[kReturnAddress] = caller_pc;
  registers = caller;
  return Step::kCaller;
}

}  // namespace

bool Unwinder::is_return_address(std::uint64_t address) {
  if (address == 0) return false;
  const AddressSpace::Place place = space_.locate(address - 1);
  return place && place.binary->code().is_after_call(place.address + 1);
}

Step Unwinder::step(const RawFrame& frame, Registers& registers, const StackBytes& stack, bool& by_frame_pointer) {
  by_frame_pointer = false;
  const AddressSpace::Place place = space_.locate(frame.lookup_address());
  if (place) {
    const Step step = place.binary->cfi().step(place.address, registers, stack);
    if (step != Step::kNoRule) return step;
  }
  by_frame_pointer = true;
  return step_by_frame_pointer(registers, stack);
}

Walk Unwinder::walk(const Registers& innermost, const StackBytes& stack, bool strict, bool is_exact,
                    std::vector<Registers>* all_registers) {
  Walk walk;
  Registers registers = innermost;
  bool is_approximate = false;
  while (walk.frames.size() < kMaxFrames) {
    RawFrame frame{*registers[kReturnAddress], *registers[kRsp], is_exact, is_approximate, false};
    walk.frames.push_back(frame);
    if (all_registers != nullptr) all_registers->push_back(registers);
    bool by_frame_pointer = false;
    const Step step = this->step(frame, registers, stack, by_frame_pointer);
    if (step == Step::kOutermost) {
      walk.end = WalkEnd::kThreadStart;
      return walk;
    }
    if (step == Step::kBeyondBytes) walk.end = WalkEnd::kBytesEnd;
    if (step != Step::kCaller) return walk;
    const AddressSpace::Place place = space_.locate(frame.lookup_address());
    is_exact = place && place.binary->cfi().is_signal_frame(place.address);
    // The stack of a signal handler may lie above the interrupted stack.
    const bool may_go_down = is_exact && stack.beyond != nullptr;
    if (!registers[kRsp] || (*registers[kRsp] <= frame.sp && !may_go_down)) return walk;
    if (*registers[kReturnAddress] == 0) return walk;
    if (is_exact || (!strict && !by_frame_pointer)) continue;
    const bool is_signal_return = [&] {
      const AddressSpace::Place caller = space_.locate(*registers[kReturnAddress] - 1);
      return caller && caller.binary->cfi().is_signal_frame(caller.address);
    }();
    if (!is_signal_return && !is_return_address(*registers[kReturnAddress])) return walk;
    is_approximate = is_approximate || by_frame_pointer;
  }
  walk.end = WalkEnd::kBytesEnd;
  return walk;
}

}  // namespace forksight::symbols
