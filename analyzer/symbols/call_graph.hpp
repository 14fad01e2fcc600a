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

enum class Link {
  kProved,    // the call goes to this function, or to a function that jumps into it
  kPossible,  // the call goes through a pointer, or through code that cannot be judged
  kRefuted,   // the call goes to another function
};

// Finds the function of a frame.
std::optional<Function> function_of(AddressSpace& space, const RawFrame& frame);

// True if the (mangled) name is that of a function that throws or catches an exception, or ends the program. Calls of
// such functions do not count as work of the caller.
bool handles_errors(std::string_view name);

// True if the code of `function` after the return address `address` contains no call. Calls that handle errors do not
// count. For example, a function that took a lock by its last call took the lock for its caller. So this function has
// returned since.
bool ends_after(const Function& function, std::uint64_t address);

// Finds the number of bytes between rsp and the CFA of `function`, during the call whose instruction ends at
// `call_end`. The number comes from the call frame information. If the function uses a frame pointer, the number comes
// from the first instructions of the function. If the result has several numbers, one of them is right. The result is
// empty if the number is not known.
std::vector<std::uint64_t> frame_depths(const Function& function, std::uint64_t call_end);

// True if two calls that `function` makes are in the same source line.
bool is_same_line(const Function& function, std::uint64_t call_end, std::uint64_t other_call_end);

// Tells whether the call before `caller`'s return address led to the frame `callee`.
Link check_link(AddressSpace& space, const RawFrame& callee, const RawFrame& caller);

// Finds the functions that a branch of `from` leads to. If the branch has only a name, the name is searched in the
// modules of `from` and `other`. The result is empty if no function is found.
std::vector<Function> resolve_branch(const Function& from, const Branch& branch, const Function& other);

// Tells whether a branch of `from` leads into `to`, directly or through functions that jump to other functions.
Link leads_into(const Function& from, const Branch& branch, const Function& to);

}  // namespace forksight::symbols
