// What a blocked thread is in the middle of: the call of libc or of a runtime, and the object of the call. Found from
// its stack and its system call, with the layouts of glibc on x86-64 (2.36; unchanged since 2.25).
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
  std::uint64_t word = 0;           // the futex word that it sleeps in; 0: none
  std::uint32_t value = 0;          // the value that the word has while it sleeps
  std::uint64_t object = 0;         // address of the lock, condition variable...; 0: unknown, or none
  std::uint64_t owner_pointer = 0;  // kPythonLock: pthread_self() of the holder, if the lock records it; else 0
  std::string library;              // kParallel: path of the runtime
  model::LibcCall libc_call;        // kLibcCall
  model::Stack stack;               // from the caller of that call outwards
  bool is_timed = false;
  bool is_private = false;  // according to the futex operation
  bool is_in_fork = false;  // it called fork(), which has not returned: an atfork handler runs
  bool is_in_exit = false;  // it called exit(), and an exit handler runs
};

// The function that a frame's call leads to, read from the code. libc's functions jump into one another, and then they
// are not on the stack themselves.
using CalleeOf = std::function<std::string(const model::Frame& caller)>;

// Both arguments must outlive the result.
CalleeOf make_callee_of(const image::Image& image, symbols::Symbolizer& symbolizer);

// For a thread with a stack. Needs the registers of a spinning thread, because that is in no system call.
StuckCall recognise(const image::Thread& thread, const model::Stack& stack, const CalleeOf& callee_of,
                    const abi::Libc& libc);

// Finds only calls of libc functions with locks that fork() does not reset, anywhere on the stack; the locks are 0 if
// there is none. The outermost call counts, because it holds the locks for the calls that it makes.
StuckCall recognise_outer_libc_call(const model::Stack& stack, const CalleeOf& callee_of);

}  // namespace forksight::inspect
