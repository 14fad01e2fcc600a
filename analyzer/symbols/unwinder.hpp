// Walks a recorded stack, frame by frame.
#pragma once

#include <cstdint>
#include <vector>

#include "symbols/address_space.hpp"
#include "symbols/registers.hpp"

namespace forksight::symbols {

struct RawFrame {
  std::uint64_t pc = 0;
  std::uint64_t sp = 0;   // rsp of the frame
  bool is_exact = false;  // `pc` is no return address: the frame is the innermost one, or a signal interrupted it
  bool is_approximate = false;
  bool is_line_unknown = false;  // the function is known, but not which of several calls it made

  std::uint64_t lookup_address() const { return is_exact ? pc : pc - 1; }
};

enum class WalkEnd {
  kThreadStart,  // the walk is complete
  kBytesEnd,     // the recorded bytes end before the stack does, or the walk has too many frames
  kLost,         // there is no rule for a frame, or the values make no sense
};

struct Walk {
  std::vector<RawFrame> frames;  // innermost first
  WalkEnd end = WalkEnd::kLost;
};

class Unwinder {
 public:
  explicit Unwinder(AddressSpace& space) : space_(space) {}

  // Walks from the frame whose registers are `innermost` to its callers. `strict`: the pc of every caller must be a
  // return address in a known module. `strict` must be set if the bytes may be stale. `is_exact`: the innermost pc is
  // the place where the thread is, and no return address. `all_registers`: null, or a list that gets the registers of
  // each frame.
  Walk walk(const Registers& innermost, const StackBytes& stack, bool strict, bool is_exact = false,
            std::vector<Registers>* all_registers = nullptr);

  // True if the instruction before `address` is a call in executable code of a module.
  bool is_return_address(std::uint64_t address);

 private:
  Step step(const RawFrame& frame, Registers& registers, const StackBytes& stack, bool& by_frame_pointer);

  AddressSpace& space_;
};

}  // namespace forksight::symbols
