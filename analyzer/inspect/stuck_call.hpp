// What a blocked thread is in the middle of: which call of libc or of a runtime, and on which object. From its stack
// and its system call; layouts of glibc on x86-64 (2.36; unchanged since 2.25).
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
  std::uint64_t word = 0;           // of the futex that it sleeps in, 0: it does not
  std::uint32_t value = 0;          // that the word has for as long as it sleeps
  std::uint64_t object = 0;         // address of the lock, condition variable...; 0: unknown, or none
  std::uint64_t owner_pointer = 0;  // kPythonLock: pthread_self() of who has it, where the lock tells; else 0
  std::string library;              // kParallel: path of the runtime
  model::LibcCall libc_call;        // kLibcCall
  model::Stack stack;               // from the caller of that call outward
  bool is_timed = false;
  bool is_private = false;  // the futex operation says so
  bool is_in_fork = false;  // it called fork(), which has not returned: an atfork handler runs
  bool is_in_exit = false;  // it called exit(), and an exit handler runs
};

// The function that a frame's call leads to, by the code: libc's functions jump into one another, and then their own
// frames are not on the stack.
using CalleeOf = std::function<std::string(const model::Frame& caller)>;

// Both arguments must outlive what is returned.
CalleeOf make_callee_of(const image::Image& image, symbols::Symbolizer& symbolizer);

// Of a thread with a stack; a thread that spins (it is in no system call) is asked for its registers.
StuckCall recognise(const image::Thread& thread, const model::Stack& stack, const CalleeOf& callee_of,
                    const abi::Libc& libc);

// Only the call of a function of libc that takes locks which fork() does not reset, wherever on the stack; its locks
// are 0 if there is none. The outermost counts: what it called it has the locks for.
StuckCall recognise_outer_libc_call(const model::Stack& stack, const CalleeOf& callee_of);

}  // namespace forksight::inspect
