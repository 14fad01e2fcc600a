// Finds the object that contains a futex word, and the threads that could wake the threads that sleep on the word.
// Only reads the process.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "proc/mappings.hpp"
#include "proc/namespaces.hpp"
#include "proc/process_memory.hpp"
#include "proc/wait_class.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// True if the word is part of a mutex that only its owner can unlock, because the mutex is recursive or checks for
// errors (glibc, pthread_mutex_unlock.c).
bool only_owner_can_unlock(const proc::FutexWord& word);
// Sets `facts.wakers`: who may end the wait for a word in private memory of process `pid`. If `facts` names a living
// owner, only the owner may end the wait. Otherwise any thread of the process may. `wakers` stays empty in two cases.
// In the first case only the owner may unlock the mutex, and the owner has ended. In the second case the word of a
// priority-inheriting futex could not be read.
void name_wakers(std::int32_t pid, const proc::WaitTarget& target, WaitFacts& facts);

// Looks up the facts about the futex waits of one process. These facts are the mapping, the owner and the use of each
// word, and the kernel function that each thread sleeps in.
class FutexLookup {
 public:
  explicit FutexLookup(std::int32_t pid) : pid_(pid), numbers_(pid) {}
  // Returns the facts about the futex wait of this thread. `wakers` is set only if the word is in private memory, or
  // belongs to a GIL.
  WaitFacts look_up(const proc::ThreadSample& thread);
  // True if the word no longer has the value for which the thread went to sleep. Then the kernel may have moved the
  // wait to another word (FUTEX_CMP_REQUEUE), or the page may have been mapped again. In both cases another process may
  // be able to end the wait. Always false for a wait with the PRIVATE flag, because no other process can end such a
  // wait. Also false for a priority-inheriting futex, and if the word cannot be read.
  bool may_have_moved(const proc::ThreadSample& thread);
  // True if a CPython interpreter is mapped: its program or its library. `tid`: any living thread.
  bool has_python(std::int32_t tid);
  // Finds the place of the thread's futex word in shared memory. nullopt: the word is not in shared memory, or that
  // memory cannot be identified.
  std::optional<proc::SharedPlace> find_shared(const proc::ThreadSample& thread);
  // The mappings of the process. `tid`: any living thread.
  const std::vector<proc::Mapping>& mappings(std::int32_t tid);

 private:
  const abi::Libc& libc(std::int32_t tid);
  const proc::ProcessMemory& memory(std::int32_t tid);

  // Changes `facts` only if the thread waits for the global lock of a Python interpreter.
  void look_up_gil(const proc::ThreadSample& thread, WaitFacts& facts);
  void name_owner(const proc::ThreadSample& thread, WaitFacts& facts);
  // True if an id in private memory may be an id of another pid namespace than that of the process.
  bool has_two_numberings();

  std::int32_t pid_;
  proc::OwnNumbers numbers_;
  std::optional<std::vector<proc::Mapping>> mappings_;  // read once
  std::optional<abi::Libc> libc_;
  std::optional<bool> has_two_numberings_;
  std::optional<proc::ProcessMemory> memory_;  // the memory of the process, opened through one living thread and kept
};

}  // namespace forksight::watch
