// Who can call whom, across the modules of an address space, as far as the machine code tells.
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
  bool operator==(const Function& other) const {
    return binary == other.binary && range.start == other.range.start;
  }
};

enum class Link {
  kProved,    // the call is to this very function, or to one that jumps into it
  kPossible,  // a call by pointer, or through code that cannot be judged
  kRefuted,   // the call is to another function
};

// The function that a frame is in.
std::optional<Function> function_of(AddressSpace& space, const RawFrame& frame);

// Is all that remains of the function after the return address `address` its end? Such a function took the lock for
// somebody else and has returned since. Calls that report an error do not count.
bool ends_after(const Function& function, std::uint64_t address);

// Bytes between rsp and the CFA of `function` during the call that ends at `call_end`: from the call frame information,
// or, with a frame pointer, from how the function begins. Of several answers one is right; none if it cannot be told.
std::vector<std::uint64_t> frame_depths(const Function& function, std::uint64_t call_end);

// Do two calls of a function stand in the same line?
bool is_same_line(const Function& function, std::uint64_t call_end, std::uint64_t other_call_end);

// Did the call before `caller`'s return address lead to the frame `callee`?
Link check_link(AddressSpace& space, const RawFrame& callee, const RawFrame& caller);

// Where a branch of `from` leads. Names are looked for in `from`'s module and in `other`'s: nothing if they are in neither.
std::vector<Function> resolve_branch(const Function& from, const Branch& branch, const Function& other);

// Does a branch of `from` lead into `to`, directly or by jumps of what it leads to?
Link leads_into(const Function& from, const Branch& branch, const Function& to);

}  // namespace forksight::symbols
