// What the sampler saw of one process, as plain data: the proof and its tests need no process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "watch/proc_text.hpp"

namespace forksight::watch {

// With the start time a pid is an identity.
struct ProcessKey {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  friend auto operator<=>(const ProcessKey&, const ProcessKey&) = default;
};

struct ThreadSample {
  std::int32_t tid = 0;
  Status status;
  Syscall call;  // of an ended thread (state Z, X): none
  bool ended() const { return status.state == 'Z' || status.state == 'X'; }
};

// All threads of a process, one after another, in ascending order of tid.
struct Round {
  std::vector<ThreadSample> threads;
};

enum class WordMapping { kUnknown, kPrivate, kShared };

struct Waker {
  std::int32_t pid = 0;
  std::string via;  // "wait4", "pipe"
  friend bool operator==(const Waker&, const Waker&) = default;
};

// What was looked up about one thread's wait between the two rounds.
struct WaitFacts {
  WordMapping mapping = WordMapping::kUnknown;   // of the futex word; looked up for non-private operations
  std::optional<std::int32_t> pi_owner;          // the tid in the word, for priority-inheriting futexes
  std::string kernel_function;                   // wchan; "" or "0" where the kernel does not tell
  bool wakers_known = false;                     // child and pipe waits: `wakers` is complete
  std::vector<Waker> wakers;
};

enum class Sharing { kUnknown, kAlone, kShared };

struct ProcessEvidence {
  ProcessKey key;
  bool same_process = false;   // the start time was the same after the second round
  bool is_x86_64 = false;      // system call numbers mean what we think
  bool has_io_uring = false;
  std::uint64_t own_signals = 0;  // handled by the shim, and waking nobody
  Sharing sharing = Sharing::kUnknown;  // is there a process of other threads with the same memory
  Round first;
  std::vector<std::int32_t> tids_between;  // listed after the first round and before the second
  Round second;
  std::vector<WaitFacts> facts;  // parallel to first.threads
};

}  // namespace forksight::watch
