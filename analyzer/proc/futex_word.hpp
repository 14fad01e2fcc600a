// Identifies the object that a futex word is part of: a mutex, a rwlock, or the tid of a thread that is joined.
// forksight compares the bytes around the word with the layouts of the process's own glibc. It names an object only if
// all bytes of the object fit. Other libraries and languages also use futexes. forksight does not identify their
// objects. These libraries call the kernel through syscall(), and a thread in syscall() does not wait for a lock of
// glibc.
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

// The object that a futex word is part of, according to the memory around the word.
struct FutexWord {
  model::FutexUse use = model::FutexUse::kUnknown;
  // the tid of the owner of a mutex, or of the writer that holds a rwlock; for a join: the tid of the thread to be
  // joined
  std::int32_t owner = 0;
  std::uint32_t readers = 0;
  model::MutexType mutex_type = model::MutexType::kUnknown;
  std::uint64_t lock = 0;  // the address of the lock; 0: the object is not a lock
  bool owner_is_gone = false;
  std::string module;      // the path of the module whose variable contains the word
  std::uint64_t bias = 0;  // the address at which that module was loaded
};

// Reads 4 or 8 bytes of the process's memory; nullopt if they cannot be read.
using ReadWord = std::function<std::optional<std::uint64_t>(std::uint64_t address, std::size_t size)>;
// True if there is a task with this tid.
using HasTask = std::function<bool(std::int32_t tid)>;

// True if the thread is in libc's function syscall(). libc itself never calls that function. So the futex belongs to
// the program, even if the bytes around the word look like a lock. False also if the code at the pc cannot be read.
bool is_in_syscall_function(const Syscall& call, const ReadWord& read);

// Identifies the word of a futex call. `lives_here`: returns true for living threads of this process. `owner_lives`:
// returns true for living threads that may own the lock. If the lock is in shared memory, these may be threads of any
// process. (A robust mutex is always marked as process-shared.) Does not set `module` and `bias` of the result.
FutexWord identify_word(const Syscall& call, abi::Version libc, const ReadWord& read, const HasTask& lives_here,
                        const HasTask& owner_lives);

}  // namespace forksight::proc
