// Reads the threads of a process once, while they run. Nothing is stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

struct ThreadSample {
  std::int32_t tid = 0;
  Status status;
  Syscall call;  // not set for an ended thread (state Z, X)
  bool ended() const { return status.state == 'Z' || status.state == 'X'; }
};

// All threads of a process, one after another, in ascending order of tid.
struct Round {
  std::vector<ThreadSample> threads;
};

// A stop, or a signal without a handler, may interrupt a poll(). Then the kernel continues the poll() as the system
// call restart_syscall() (do_restart_poll() in fs/select.c of Linux). /proc shows this call with the arguments of the
// poll(). select(), ppoll() and epoll_wait() are not restarted in this way. This function turns such a
// restart_syscall() back into poll(). `kernel_function`: the kernel function in which the thread sleeps, from wchan.
void name_restarted(Syscall& call, std::string_view kernel_function);

// Reads the system call that a thread is in. If this is the restarted form of a poll(), returns the poll(): see
// name_restarted(). Sets `refused` if the kernel refuses the read.
std::optional<Syscall> read_call(std::int32_t pid, std::int32_t tid, bool& refused);

// Reads one thread; nullopt if it no longer exists, or if the kernel refuses (then `refused` is set).
std::optional<ThreadSample> sample_thread(std::int32_t pid, std::int32_t tid, bool& refused);

struct SampledThreads {
  std::vector<std::optional<ThreadSample>> threads;  // each as sample_thread() returns it
  bool is_refused = false;
};
// Reads the threads of several processes, and returns samples for each process. If root runs forksight, another process
// of forksight, the opener (files/opener.hpp), may have to open the files. Then one call of this function takes less
// time than a call for each of `processes`.
std::vector<SampledThreads> sample_threads(std::span<const ThreadsOf> processes);
// Reads these threads of one process. `tids` is ascending.
SampledThreads sample_threads(std::int32_t pid, std::vector<std::int32_t> tids);

// Reads all threads that exist now; nullopt if one disappeared during the read, or if the kernel refuses.
std::optional<Round> sample_round(std::int32_t pid, bool& refused);

// Lists those threads of the round that had not ended when they were read.
ThreadsOf list_living(std::int32_t pid, const Round& round);

struct SampledRound {
  std::optional<Round> round;  // as sample_round() returns it
  bool is_refused = false;
};
// Reads all threads of several processes, and returns a round for each process.
std::vector<SampledRound> sample_rounds(std::span<const std::int32_t> pids);

}  // namespace forksight::proc
