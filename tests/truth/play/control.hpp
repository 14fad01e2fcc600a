// Keeps the order of the forced steps, in memory that all processes of a scenario share. The judge reads this memory.
// This code makes its system calls without libc. So no library, and not the shim, sees them as calls of the scenario.
#pragma once

#include <atomic>
#include <cstdint>

namespace truth {

inline constexpr int kMaxThreads = 24;
inline constexpr int kSignals = 32;
inline constexpr unsigned kFarSeconds = 1000;  // longer than any scenario is played

enum Phase : int32_t { kUnborn, kBefore, kInStep, kEnded };

struct Slot {
  std::atomic<int32_t> pid;
  std::atomic<int32_t> tid;
  std::atomic<int32_t> step;
  std::atomic<int32_t> phase;
  std::atomic<int32_t> process;   // the slot of this process' first thread
  std::atomic<int32_t> handled;   // for a first thread: how many signals its process has handled
  std::atomic<int32_t> handlers;  // for a first thread: a bit for each signal with a handler
  std::atomic<int32_t> result;    // what libc returned in the last step
};
static_assert(sizeof(Slot) == 32);

struct Control {
  std::atomic<uint32_t> turn;  // the forced step whose turn it is: all before it are done, or have begun
  uint32_t reserved;
  std::atomic<uint64_t> private_objects;  // addresses: the judge maps those of a report to names
  std::atomic<uint64_t> shared_objects;
  uint64_t object_size;
  Slot slots[kMaxThreads];
};
static_assert(sizeof(Control) == 32 + 32 * kMaxThreads);

long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

void publish_turn(Control& control, uint32_t turn);
void await_turn(Control& control, uint32_t turn);

// Waits until the thread sleeps in its step, or has finished it.
void await_asleep(const Slot& slot, int32_t step);

// Waits until the first thread of the process has ended. It remains as a zombie while other threads of the process
// live.
void await_first_thread_end(int32_t pid);

// Waits until all threads of the process have the state: 'T' stopped, 'Z' ended.
void await_process_state(int32_t pid, char state);

void raw_nap_ms(long ms);

}  // namespace truth
