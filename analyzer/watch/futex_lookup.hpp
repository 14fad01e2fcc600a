// What the futex words of one process are part of, and who could wake those who sleep on them. Reads only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "forksight/abi/glibc.hpp"
#include "proc/mappings.hpp"
#include "proc/namespaces.hpp"
#include "proc/wait_class.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// A mutex that refuses to be unlocked by another thread than its owner (glibc, pthread_mutex_unlock.c).
bool is_unlock_checked(const proc::FutexWord& word);
// Who may end the wait for a word in private memory of process `pid`: the owner, if `facts` know it, else any thread.
void name_wakers(std::int32_t pid, const proc::WaitTarget& target, WaitFacts& facts);

// Mapping, owner and use of the words, and what the kernel says each thread sleeps in.
class FutexLookup {
 public:
  explicit FutexLookup(std::int32_t pid) : pid_(pid), numbers_(pid) {}
  // Who could wake it is said here for words in private memory alone, and for a GIL.
  WaitFacts look_up(const proc::ThreadSample& thread);
  // The word is not what the thread last saw there. Its wait may have been moved to another word (FUTEX_CMP_REQUEUE),
  // or the page was mapped anew: then somebody else can end it. Only of a wait without the PRIVATE flag: with it no
  // other process can.
  bool may_have_moved(const proc::ThreadSample& thread) const;
  // A CPython interpreter is mapped: its program or its library. `tid`: any thread that lives.
  bool has_python(std::int32_t tid);
  // Of a word in shared memory; nullopt: what it is shared by has no identity.
  std::optional<proc::SharedPlace> find_shared(const proc::ThreadSample& thread);

 private:
  const std::vector<proc::Mapping>& mappings(std::int32_t tid);
  const abi::Libc& libc(std::int32_t tid);

  // Sets nothing if the thread does not wait for the global lock of a Python interpreter.
  void look_up_gil(const proc::ThreadSample& thread, WaitFacts& facts);
  void name_owner(const proc::ThreadSample& thread, WaitFacts& facts);

  std::int32_t pid_;
  proc::OwnNumbers numbers_;
  std::optional<std::vector<proc::Mapping>> mappings_;  // read once
  std::optional<abi::Libc> libc_;
};

}  // namespace forksight::watch
