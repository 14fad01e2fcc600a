// Samples the threads of a process, and looks up what their waits depend on. Reads only: nothing is stopped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "watch/evidence.hpp"
#include "watch/mappings.hpp"
#include "watch/namespaces.hpp"
#include "watch/wait_class.hpp"

namespace forksight::watch {

// One thread; nullopt if it is gone, or the kernel refuses (`refused` is set then).
std::optional<ThreadSample> sample_thread(std::int32_t pid, std::int32_t tid, bool& refused);

// All threads that are there now; nullopt if one vanished under way, or if reading is refused.
std::optional<Round> sample_round(std::int32_t pid, bool& refused);

// True if this thread alone shows that its process may go on: one small read. What cannot be read is no such sign.
bool is_awake(std::int32_t pid, std::int32_t tid);

// What follows is asked of a thread that lives: a first thread that has ended has no memory and no descriptors any more
// while the others go on. /proc/TID works for threads too.

// Is its program x86-64 code.
bool runs_x86_64(std::int32_t tid);

bool has_io_uring(std::int32_t tid);

// glibc is mapped, as a library: what else uses threads may have signals 32 and 33 for itself.
bool has_libc(std::int32_t tid);

// Does a thread of its parent wait in vfork() until `pid` execs or ends: then the two share their memory.
bool is_in_vfork(std::int32_t pid, std::int32_t parent);

// Looks through all processes for those that have the memory of this thread of `pid` but are others.
Sharing find_sharing(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers);

// Mapping, owner and use of the futex words of one process, and what the kernel says each thread sleeps in.
class FutexLookup {
 public:
  explicit FutexLookup(std::int32_t pid) : pid_(pid), numbers_(pid) {}
  // Who could wake it is said here for words in private memory alone.
  WaitFacts look_up(const ThreadSample& thread);
  // Of a word in shared memory; nullopt: what it is shared by has no identity.
  std::optional<SharedPlace> find_shared(const ThreadSample& thread);

 private:
  const std::vector<Mapping>& mappings(std::int32_t tid);
  const abi::Libc& libc(std::int32_t tid);

  void name_owner(const ThreadSample& thread, WaitFacts& facts);

  std::int32_t pid_;
  OwnNumbers numbers_;
  std::optional<std::vector<Mapping>> mappings_;  // read once
  std::optional<abi::Libc> libc_;
};

// The process behind a pidfd of another process; nullopt if it has ended or cannot be seen.
std::optional<std::int32_t> resolve_pidfd(std::int32_t pid, std::int32_t fd);

}  // namespace forksight::watch
