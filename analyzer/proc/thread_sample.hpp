// The threads of a process at one look. Only reads: nothing is stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "proc/proc_text.hpp"

namespace forksight::proc {

struct ThreadSample {
  std::int32_t tid = 0;
  Status status;
  Syscall call;  // for an ended thread (state Z, X): none
  bool ended() const { return status.state == 'Z' || status.state == 'X'; }
};

// All threads of a process, one after another, in ascending order of tid.
struct Round {
  std::vector<ThreadSample> threads;
};

// If a stop, or a signal without a handler, interrupts a poll(), it goes on as restart_syscall(), with the arguments of
// the poll(): Linux, fs/select.c, do_restart_poll(). select(), ppoll() and epoll_wait() are not restarted in this way.
// `kernel_function`: what it sleeps in, from wchan.
void name_restarted(Syscall& call, std::string_view kernel_function);

// The call that a thread is in, under the name by which the program made it.
std::optional<Syscall> read_call(std::int32_t pid, std::int32_t tid, bool& refused);

// One thread; nullopt if it has ended, or if the kernel refuses (then `refused` is set).
std::optional<ThreadSample> sample_thread(std::int32_t pid, std::int32_t tid, bool& refused);

// All threads that exist now; nullopt if one ended during the read, or if reading is refused.
std::optional<Round> sample_round(std::int32_t pid, bool& refused);

}  // namespace forksight::proc
