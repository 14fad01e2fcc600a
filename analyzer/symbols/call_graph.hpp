// Finds out, from the machine code of all modules of an address space, which functions can call which other functions.
#pragma once

#include <optional>
#include <vector>

#include "symbols/address_space.hpp"
#include "symbols/machine_code.hpp"
#include "symbols/unwinder.hpp"

namespace forksight::symbols {

// A function of a loaded module. Its range has link-time addresses.
struct Function {
  const Module* module = nullptr;
  Binary* binary = nullptr;
  CodeRange range;
  bool operator==(const Function& other) const { return binary == other.binary && range.start == other.range.start; }
};

// Says whether a call leads into a certain function.
enum class Link {
  kProved,    // the call goes to that function, or to another function that jumps into it
  kPossible,  // the call goes through a pointer, or through code that cannot be judged
  kRefuted,   // the call goes elsewhere
};

// Finds the function of a frame.
std::optional<Function> function_of(AddressSpace& space, const RawFrame& frame);

// True if the (mangled) name is that of a function that throws or catches an exception, or ends the program.
// ends_after() ignores calls of such functions.
bool handles_errors(std::string_view name);

// True if the code of `function` after the return address `address` contains no call. Calls that handle errors
// (handles_errors) do not count. For example, the last call of a wrapper may take a lock. Then the wrapper calls no
// function that could unlock the lock, so it returns with the lock held.
bool ends_after(const Function& function, std::uint64_t address);

// Finds the number of bytes between rsp and the CFA (canonical frame address) of `function`, during the call whose
// instruction ends at `call_end`. If the call frame information computes the CFA from rsp, the number comes from there.
// Otherwise, for example in a function with a frame pointer, the number is computed from the function's first
// instructions. If the result has several numbers, one of them is right. The result is empty if the number is not
// known.
std::vector<std::uint64_t> frame_depths(const Function& function, std::uint64_t call_end);

// True if two calls that `function` makes are in the same source line.
bool is_same_line(const Function& function, std::uint64_t call_end, std::uint64_t other_call_end);

// Tells whether the call before `caller`'s return address led to the frame `callee`.
Link check_link(AddressSpace& space, const RawFrame& callee, const RawFrame& caller);

// Finds the functions that a branch of `from` leads to. If the branch has no target address but the name of a function,
// this function looks the name up in the modules of `from` and `other`. The result is empty if no function is found.
std::vector<Function> resolve_branch(const Function& from, const Branch& branch, const Function& other);

// Tells whether a branch of `from` leads into `to`, directly or through functions that jump to other functions.
Link leads_into(const Function& from, const Branch& branch, const Function& to);

}  // namespace forksight::symbols
