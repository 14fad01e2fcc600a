#include "control.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace truth {
namespace {

constexpr int kLooksAsleep = 3;

// Returns the state of a task as /proc shows it; '\0' if there is no such task.
char state_of(const char* path) {
  char text[512];
  const long fd = raw_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return '\0';
  const long length = raw_call(SYS_read, fd, reinterpret_cast<long>(text), sizeof text - 1);
  raw_call(SYS_close, fd);
  if (length <= 0) return '\0';
  text[length] = '\0';
  const char* end_of_name = std::strrchr(text, ')');
  return end_of_name != nullptr && end_of_name[1] == ' ' ? end_of_name[2] : '\0';
}

char state_of_task(int32_t pid, int32_t tid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
  return state_of(path);
}

// True if a task with the state `now` has reached `state`, or has ended. A task that waits for its vfork() child has
// the state 'D'. A stop signal does not stop such a task, so 'D' counts as 'T'.
bool has_reached(char now, char state) {
  return now == state || now == '\0' || now == 'X' || now == 'Z' || (state == 'T' && now == 'D');
}

// True if has_reached() is true for each task of the process.
bool have_all_reached(int32_t pid, char state) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task", pid);
  const long folder = raw_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return true;
  bool have_all = true;
  alignas(dirent64) char entries[4096];
  long size = 0;
  while (have_all && (size = raw_call(SYS_getdents64, folder, reinterpret_cast<long>(entries), sizeof entries)) > 0) {
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const bool is_task = entry->d_name[0] != '.';
      have_all = have_all && (!is_task || has_reached(state_of_task(pid, std::atoi(entry->d_name)), state));
    }
  }
  raw_call(SYS_close, folder);
  return have_all;
}

}  // namespace

long raw_call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

void publish_turn(Control& control, uint32_t turn) {
  control.turn.store(turn);
  raw_call(SYS_futex, reinterpret_cast<long>(&control.turn), FUTEX_WAKE, INT_MAX);
}

void await_turn(Control& control, uint32_t turn) {
  for (uint32_t now = control.turn.load(); now < turn; now = control.turn.load()) {
    raw_call(SYS_futex, reinterpret_cast<long>(&control.turn), FUTEX_WAIT, now);
  }
}

void raw_nap_ms(long ms) {
  timespec time{ms / 1000, ms % 1000 * 1000000};
  raw_call(SYS_nanosleep, reinterpret_cast<long>(&time));
}

void await_asleep(const Slot& slot, int32_t step) {
  for (int asleep = 0; asleep < kLooksAsleep;) {
    if (slot.step.load() != step || slot.phase.load() != kInStep) return;
    const char state = state_of_task(slot.pid.load(), slot.tid.load());
    if (state == '\0' || state == 'Z') return;
    asleep = state == 'S' ? asleep + 1 : 0;
    raw_nap_ms(1);
  }
}

void await_first_thread_end(int32_t pid) {
  for (char now = state_of_task(pid, pid); now != 'Z' && now != '\0'; now = state_of_task(pid, pid)) raw_nap_ms(1);
}

void await_process_state(int32_t pid, char state) {
  while (!have_all_reached(pid, state)) raw_nap_ms(1);
}

}  // namespace truth
