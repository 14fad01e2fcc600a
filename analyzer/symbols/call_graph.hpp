// Which functions can call which others, across the modules of an address space, as far as the machine code shows it.
#pragma once

#include <optional>
#include <vector>

#include "symbols/address_space.hpp"
#include "symbols/machine_code.hpp"
#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// A function of a loaded module; link-time addresses.
struct Function {
  const Module* module = nullptr;
  Binary* binary = nullptr;
  CodeRange range;
  bool operator==(const Function& other) const { return binary == other.binary && range.start == other.range.start; }
};

enum class Link {
  kProved,    // the call is to this very function, or to one that jumps into it
  kPossible,  // a call by pointer, or through code that cannot be judged
  kRefuted,   // the call is to another function
};

// The function that a frame is in.
std::optional<Function> function_of(AddressSpace& space, const RawFrame& frame);

// True if only the function's end follows the return address `address`. Such a function took the lock for its caller
// and has returned since. Calls that report an error do not count.
bool ends_after(const Function& function, std::uint64_t address);

// Bytes between rsp and the CFA of `function` during the call that ends at `call_end`: from the call frame information,
// or, with a frame pointer, from the beginning of the function. If there are several answers, one of them is right;
// none if it is not known.
std::vector<std::uint64_t> frame_depths(const Function& function, std::uint64_t call_end);

// True if two calls of a function are in the same line.
bool is_same_line(const Function& function, std::uint64_t call_end, std::uint64_t other_call_end);

// Whether the call before `caller`'s return address led to the frame `callee`.
Link check_link(AddressSpace& space, const RawFrame& callee, const RawFrame& caller);

// The functions that a branch of `from` leads to. Names are searched in `from`'s module and in `other`'s; empty if
// neither has them.
std::vector<Function> resolve_branch(const Function& from, const Branch& branch, const Function& other);

// Whether a branch of `from` leads into `to`, directly or by jumps of the functions that it leads to.
Link leads_into(const Function& from, const Branch& branch, const Function& to);

}  // namespace forksight::symbols
