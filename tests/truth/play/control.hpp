// Keeps the order of the forced steps, in memory that all processes of a scenario share. The judge reads this memory.
// This code makes its system calls without libc, so that the shim does not see them as calls of the scenario.
#pragma once

#include <atomic>
#include <cstdint>

namespace truth {

inline constexpr int kMaxThreads = 24;
inline constexpr int kSignals = 32;
inline constexpr unsigned kFarSeconds = 1000;  // when timers of a scenario expire: long after the end of any play

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
  std::atomic<uint32_t> turn;  // the forced step whose turn it is; each earlier one is done, or has a "!" and has begun
  uint32_t reserved;
  // The addresses of the objects. With them the judge finds the name of an object whose address a report contains.
  std::atomic<uint64_t> private_objects;
  std::atomic<uint64_t> shared_objects;
  uint64_t object_size;
  Slot slots[kMaxThreads];
};
static_assert(sizeof(Control) == 32 + 32 * kMaxThreads);

long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0);

void publish_turn(Control& control, uint32_t turn);
void await_turn(Control& control, uint32_t turn);

// Waits until the thread sleeps in this step, or has finished the step.
void await_asleep(const Slot& slot, int32_t step);

// Waits until the first thread of the process has ended. While other threads of the process live, the first thread
// remains as a zombie.
void await_first_thread_end(int32_t pid);

// Waits until each thread of the process has the state, or has ended. 'T': stopped; 'Z': ended.
void await_process_state(int32_t pid, char state);

void raw_nap_ms(long ms);

}  // namespace truth
