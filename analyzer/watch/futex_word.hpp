// What a futex word is part of: a mutex, a rwlock, the tid of a thread that is joined. Told by the bytes around it, in
// the layout of the process' own glibc, and only if everything about them fits: other libraries and languages put words
// of their own into futexes, and of those nothing is claimed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "forksight/abi/glibc.hpp"
#include "watch/evidence.hpp"
#include "watch/proc_text.hpp"
#include "watch/wait_class.hpp"

namespace forksight::watch {

// Reads 4 or 8 bytes of the process' memory; nullopt if they are not there.
using ReadWord = std::function<std::optional<std::uint64_t>(std::uint64_t address, std::size_t size)>;
// Is there a task with this tid.
using HasTask = std::function<bool(std::int32_t tid)>;

// `lives_here`: of a thread of this process. `owner_lives`: of one that may own the lock, of any process if it lies in
// shared memory. (A robust mutex calls itself process-shared wherever it lies.) Sets all but the module of the result.
FutexWord identify_word(const Syscall& call, abi::Version libc, const ReadWord& read, const HasTask& lives_here,
                        const HasTask& owner_lives);

// Who may end the wait for a word in private memory of process `pid`: the owner, if `facts` know it, else any thread.
void name_wakers(std::int32_t pid, const WaitTarget& target, WaitFacts& facts);

}  // namespace forksight::watch
