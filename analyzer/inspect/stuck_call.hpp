// Finds out which call of libc or of a runtime a blocked thread is in, and the object of that call. The stack and the
// system call of the thread show the call. The layouts of glibc on x86-64 that forksight/abi/ describes show the
// object.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "image/image.hpp"
#include "inspect/call_kinds.hpp"
#include "model/model.hpp"

namespace forksight::inspect {

struct StuckCall {
  CallKind kind = CallKind::kUnknown;
  std::uint64_t word = 0;           // the futex word on which the thread sleeps; 0: none
  std::uint32_t value = 0;          // the value that the word has while the thread sleeps
  std::uint64_t object = 0;         // address of the lock, condition variable...; 0: unknown, or none
  std::uint64_t owner_pointer = 0;  // kPythonLock: pthread_self() of the holder, if the lock records it; else 0
  std::string library;              // kParallel: path of the runtime
  model::LibcCall libc_call;        // kLibcCall
  model::Stack stack;               // begins with the frame that made the call
  bool is_timed = false;
  bool is_private = false;  // according to the futex operation
  bool is_in_fork = false;  // the thread called fork(), which has not returned, because an atfork handler runs
  bool is_in_exit = false;  // the thread called exit(), and an exit handler runs
};

// Returns the name of the function that a frame calls, read from the code of the call. A function of libc may end by a
// jump to another function. Then the stack does not show the first function.
using CalleeOf = std::function<std::string(const model::Frame& caller)>;

// Both arguments must outlive the result.
CalleeOf make_callee_of(const image::Image& image, symbols::Symbolizer& symbolizer);

// Finds the call that a thread is in, from its stack and its system call. For a thread that spins, the registers are
// needed, because such a thread is in no system call. If no call is recognised, the kind is kUnknown.
StuckCall recognise(const image::Thread& thread, const model::Stack& stack, const CalleeOf& callee_of,
                    const abi::Libc& libc);

// Searches the whole stack for a call of a libc function that takes locks which fork() does not reset. If there are
// several such calls, returns the outermost one, because its function holds the locks during the inner calls. If there
// is none, the locks are 0.
StuckCall recognise_outer_libc_call(const model::Stack& stack, const CalleeOf& callee_of);

}  // namespace forksight::inspect
