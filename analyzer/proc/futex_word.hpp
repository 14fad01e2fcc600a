// What a futex word is part of: a mutex, a rwlock, the tid of a thread that is joined. Told by the bytes around it, in
// the layout of the process' own glibc, and only if everything about them fits: other libraries and languages put words
// of their own into futexes, and of those nothing is claimed. Who calls the kernel by syscall(), as they do, waits for no
// lock of glibc.
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

// What the memory around a futex word says that it is part of.
struct FutexWord {
  model::FutexUse use = model::FutexUse::kUnknown;
  std::int32_t owner = 0;  // of a mutex, or of a rwlock held for writing; of a join: the thread that is to end
  std::uint32_t readers = 0;
  model::MutexType mutex_type = model::MutexType::kUnknown;
  std::uint64_t lock = 0;  // its address; 0: not a lock
  bool owner_is_gone = false;
  std::string module;      // path of the module that the word is a variable of, and ...
  std::uint64_t bias = 0;  // ... where that was loaded
};

// Reads 4 or 8 bytes of the process' memory; nullopt if they are not there.
using ReadWord = std::function<std::optional<std::uint64_t>(std::uint64_t address, std::size_t size)>;
// Is there a task with this tid.
using HasTask = std::function<bool(std::int32_t tid)>;

// The thread is in libc's function syscall(), which nothing in libc calls: the futex is the program's own, whatever the
// bytes around the word look like. False, too, if its code cannot be read.
bool is_in_syscall_function(const Syscall& call, const ReadWord& read);

// `lives_here`: of a thread of this process. `owner_lives`: of one that may own the lock, of any process if it lies in
// shared memory. (A robust mutex calls itself process-shared wherever it lies.) Sets all but the module of the result.
FutexWord identify_word(const Syscall& call, abi::Version libc, const ReadWord& read, const HasTask& lives_here,
                        const HasTask& owner_lives);

}  // namespace forksight::proc
