// What a futex word is part of: a mutex, a rwlock, or the tid of a thread that is joined. The bytes around it show
// this, in the layout of the process's own glibc, and only if everything about them fits. Other libraries and languages
// use futexes, too, and nothing is claimed about theirs. They call the kernel by syscall(). A thread that does so waits
// for no lock of glibc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "forksight/abi/glibc.hpp"
#include "model/wait.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

// What a futex word is part of, according to the memory around it.
struct FutexWord {
  model::FutexUse use = model::FutexUse::kUnknown;
  std::int32_t owner = 0;  // of a mutex, or of a rwlock held for writing; for a join: the thread to be joined
  std::uint32_t readers = 0;
  model::MutexType mutex_type = model::MutexType::kUnknown;
  std::uint64_t lock = 0;  // its address; 0: not a lock
  bool owner_is_gone = false;
  std::string module;      // path of the module with the variable that the word is part of, and ...
  std::uint64_t bias = 0;  // ... the address at which it was loaded
};

// Reads 4 or 8 bytes of the process's memory; nullopt if they cannot be read.
using ReadWord = std::function<std::optional<std::uint64_t>(std::uint64_t address, std::size_t size)>;
// True if there is a task with this tid.
using HasTask = std::function<bool(std::int32_t tid)>;

// True if the thread is in libc's function syscall(). Nothing in libc calls that function, so the futex is the program's
// own, whatever the bytes around the word look like. False, too, if its code cannot be read.
bool is_in_syscall_function(const Syscall& call, const ReadWord& read);

// `lives_here`: true for threads of this process. `owner_lives`: true for threads that may own the lock, of any process
// if the lock is in shared memory. (A robust mutex is marked as process-shared wherever it is.) Sets all members but
// the module of the result.
FutexWord identify_word(const Syscall& call, abi::Version libc, const ReadWord& read, const HasTask& lives_here,
                        const HasTask& owner_lives);

}  // namespace forksight::proc
