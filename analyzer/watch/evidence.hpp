// What was seen of one process, as plain data: the proof and its tests need no process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proc/futex_word.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_traits.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::watch {

enum class WordMapping { kUnknown, kPrivate, kShared };

// Who could end a wait.
struct Waker {
  std::int32_t pid = 0;
  std::string via;       // "wait4", "pipe", "mutex" ...
  std::int32_t tid = 0;  // 0: any thread of that process
  std::int32_t fd = -1;  // the descriptor by which it could
  friend bool operator==(const Waker&, const Waker&) = default;
};

// What was looked up about one thread's wait between the two rounds.
struct WaitFacts {
  WordMapping mapping = WordMapping::kUnknown;  // of the futex word; looked up for non-private operations
  std::optional<std::int32_t> pi_owner;         // the tid in the word, for priority-inheriting futexes
  std::string kernel_function;                  // wchan; "" or "0" where the kernel does not tell
  proc::FutexWord word;
  std::string object;  // "pipe:[17]", "socket:[18]", "eventfd:3", or the path of a file
  bool is_fifo = false;
  bool wakers_known = false;    // `wakers` is complete. Without, a private futex is its own process'
  bool is_open_to_all = false;  // somebody who is not known may end it, as long as it lasts
  std::vector<Waker> wakers;
};

struct ProcessEvidence {
  proc::ProcessKey key;
  bool same_process = false;  // the start time was the same after the second round
  bool is_x86_64 = false;     // system call numbers mean what we think
  bool has_io_uring = false;
  std::uint64_t own_signals = 0;                    // handled by the shim, and waking nobody
  bool has_libc = true;                             // glibc's, which keeps signals 32 and 33 for itself
  bool has_python_interrupt = false;                // its handler of SIGINT is the one that Python has for Ctrl-C
  std::uint64_t timed_signals = 0;                  // that come without anybody who sends them; bit 0 is signal 1
  bool is_frozen = false;                           // by its control group
  proc::Sharing sharing = proc::Sharing::kUnknown;  // is there a process of other threads with the same memory
  std::vector<std::int32_t> sharers;                // those; without them kShared proves nothing
  proc::Round first;
  std::vector<std::int32_t> tids_between;  // listed after the first round and before the second
  proc::Round second;
  std::vector<WaitFacts> facts;  // parallel to first.threads
};

}  // namespace forksight::watch
