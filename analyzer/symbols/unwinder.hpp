// Walks a recorded stack, frame by frame.
#pragma once

#include <cstdint>
#include <vector>

#include "symbols/address_space.hpp"
#include "symbols/registers.hpp"

namespace forksight::symbols {

struct RawFrame {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;   // its rsp
  bool is_exact = false;  // `pc` is no return address: the frame is the innermost, or was interrupted by a signal
  bool is_approximate = false;
  bool is_line_unknown = false;  // the function is right, but it has several calls that `pc` may stand for

  std::uint64_t lookup_address() const { return is_exact ? pc : pc - 1; }
};

enum class WalkEnd {
  kThreadStart,  // complete
  kBytesEnd,     // the recorded bytes end before the stack does
  kLost,         // no rule, or nonsense
};

struct Walk {
  std::vector<RawFrame> frames;  // innermost first
  WalkEnd end = WalkEnd::kLost;
};

class Unwinder {
 public:
  explicit Unwinder(AddressSpace& space) : space_(space) {}

  // `strict`: every caller must be a return address in a known module, as it is where bytes may be stale. `is_exact`:
  // the innermost pc is where the thread stands, not a return address.
  Walk walk(const Registers& innermost, const StackBytes& stack, bool strict, bool is_exact = false);

  // Is the instruction before `address` a call in executable code of a module?
  bool is_return_address(std::uint64_t address);

 private:
  Step step(const RawFrame& frame, Registers& registers, const StackBytes& stack, bool& by_frame_pointer);

  AddressSpace& space_;
};

}  // namespace forksight::symbols
