// The observations of one process, as plain data, so that the proof and its tests need no process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proc/futex_word.hpp"
#include "proc/memory_sharers.hpp"
#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::watch {

enum class WordMapping { kUnknown, kPrivate, kShared };

// A process or thread that could end a wait.
struct Waker {
  std::int32_t pid = 0;
  std::string via;       // "wait4", "pipe", "mutex" ...
  std::int32_t tid = 0;  // 0: any thread of that process
  std::int32_t fd = -1;  // the descriptor by which it could end the wait
  friend bool operator==(const Waker&, const Waker&) = default;
};

// Facts about the wait of one thread. forksight looks for these facts between the two rounds of samples.
struct WaitFacts {
  // the kind of memory that contains the futex word; looked up only for operations without the PRIVATE flag
  WordMapping mapping = WordMapping::kUnknown;
  std::optional<std::int32_t> pi_owner;  // for priority-inheriting futexes: the tid in the futex word
  std::string kernel_function;           // wchan; "" or "0" where the kernel does not show it
  proc::FutexWord word;
  std::string object;  // "pipe:[17]", "socket:[18]", "eventfd:3", or the path of a file
  bool is_fifo = false;
  // True if `wakers` is complete. False: nothing is known about who could end the wait, with one exception: no other
  // process can end the wait for a private futex.
  bool wakers_known = false;
  bool is_open_to_all = false;  // an unknown process or a signal may end the wait at any time
  std::vector<Waker> wakers;
};

struct ProcessEvidence {
  proc::ProcessKey key;
  bool is_incomplete = false;  // something was not read: the kernel refused it, or descriptors or memory were lacking
  bool same_process = false;   // the process had the same start time after the second round
  bool is_x86_64 = false;      // system call numbers have their x86-64 meaning
  bool has_io_uring = false;
  std::uint64_t own_signals = 0;                    // signals that the shim handles; their handlers wake nobody
  bool has_libc = true;                             // the process has glibc, which keeps signals 32 and 33 for itself
  bool has_python_interrupt = false;                // the handler of SIGINT is Python's own one, for Ctrl-C
  bool has_python_abort_handler = false;            // a Python script has a handler of SIGABRT
  std::uint64_t timed_signals = 0;                  // signals that arrive without a sender; bit 0 is signal 1
  std::uint64_t timer_signals = 0;                  // the signals of its POSIX timers, with or without a handler
  bool is_frozen = false;                           // its control group is frozen
  proc::Sharing sharing = proc::Sharing::kUnknown;  // whether a separate process has the same memory
  std::vector<std::int32_t> sharers;                // the processes with the same memory; kShared and empty: not known
  std::int32_t possible_sharer = 0;  // one of `sharers` that is not known to share the memory; 0: none
  proc::Round first;
  std::vector<std::int32_t> tids_between;  // listed after the first round and before the second one
  proc::Round second;
  std::vector<WaitFacts> facts;  // parallel to first.threads
};

}  // namespace forksight::watch
