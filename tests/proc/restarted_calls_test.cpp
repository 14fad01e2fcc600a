// Blocks a real thread in a system call, and sends it a signal whose handler has SA_RESTART. Checks whether the call
// then fails with EINTR. is_restarted_after_handler() must not promise a restart that the kernel does not make.
#include "proc/restarted_calls.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include "proc/thread_sample.hpp"

namespace forksight::proc {
namespace {

std::atomic<int> g_handled{0};

void install_handler() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_handled.fetch_add(1); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGRTMIN + 9, &action, nullptr);
}

// Waits until the thread sleeps in the system call `number`, and returns that call.
Syscall await_call(pid_t tid, std::int64_t number) {
  for (;;) {
    bool refused = false;
    const auto sample = sample_thread(getpid(), tid, refused);
    if (sample && sample->call.in_syscall && sample->call.number == number && sample->status.state == 'S')
      return sample->call;
    std::this_thread::yield();
  }
}

struct Blocked {
  const char* name;
  std::int64_t number;
  std::function<long()> call;     // blocks until `release` runs, or fails with EINTR
  std::function<void()> release;  // ends the call if the kernel has restarted it
  bool is_restarted;              // what forksight says
};

// True if the kernel restarted the call after the handler, false if it failed with EINTR.
void check(const Blocked& blocked) {
  SCOPED_TRACE(blocked.name);
  std::atomic<pid_t> tid{0};
  std::atomic<bool> was_interrupted{false}, is_over{false};
  std::thread thread([&] {
    tid = static_cast<pid_t>(syscall(SYS_gettid));
    was_interrupted = blocked.call() == -1 && errno == EINTR;
    is_over = true;
  });
  while (tid == 0) std::this_thread::yield();
  const Syscall call = await_call(tid, blocked.number);
  EXPECT_EQ(is_restarted_after_handler(getpid(), call), blocked.is_restarted);
  const int before = g_handled;
  EXPECT_EQ(syscall(SYS_tgkill, getpid(), tid.load(), SIGRTMIN + 9), 0);
  while (g_handled == before) std::this_thread::yield();
  // After the handler, the thread either leaves the call with EINTR, or sleeps in it again.
  bool sleeps_again = false;
  while (!is_over && !sleeps_again) {
    bool refused = false;
    const auto sample = sample_thread(getpid(), tid, refused);
    sleeps_again =
        sample && sample->call.in_syscall && sample->call.number == blocked.number && sample->status.state == 'S';
  }
  blocked.release();
  thread.join();
  if (blocked.is_restarted) {
    EXPECT_FALSE(was_interrupted);
  }
}

TEST(RestartedCalls, TheKernelRestartsEachCallOfWhichItIsSaid) {
  install_handler();
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  const int in = pipe_ends[0], out = pipe_ends[1];
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  char byte = 0;
  const auto feed_pipe = [&] { (void)!write(out, "x", 1); };
  const auto drain_pipe = [&] { (void)!read(in, &byte, 1); };

  check({"read of a pipe", SYS_read, [&] { return read(in, &byte, 1); }, feed_pipe, true});
  check({"read of a socket", SYS_read, [&] { return read(sockets[0], &byte, 1); },
         [&] { (void)!write(sockets[1], "x", 1); }, false});

  std::uint32_t word = 1;
  const auto wake = [&] {
    __atomic_store_n(&word, 0, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  };
  check(
      {"futex", SYS_futex, [&] { return syscall(SYS_futex, &word, FUTEX_WAIT, 1, nullptr, nullptr, 0); }, wake, true});
  word = 1;
  const timespec hour{3600, 0};
  check({"futex with a timeout", SYS_futex, [&] { return syscall(SYS_futex, &word, FUTEX_WAIT, 1, &hour, nullptr, 0); },
         wake, false});

  pollfd polled{in, POLLIN, 0};
  check({"poll", SYS_poll, [&] { return syscall(SYS_poll, &polled, 1, -1); }, feed_pipe, false});
  drain_pipe();
  fd_set set;
  FD_ZERO(&set);
  FD_SET(in, &set);
  check({"pselect6", SYS_pselect6,
         [&] { return syscall(SYS_pselect6, in + 1, &set, nullptr, nullptr, nullptr, nullptr); }, feed_pipe, false});
  drain_pipe();

  const int semaphore = semget(IPC_PRIVATE, 1, 0600);
  ASSERT_GE(semaphore, 0);
  sembuf take{0, -1, 0}, give{0, 1, 0};
  check({"semop", SYS_semop, [&] { return syscall(SYS_semop, semaphore, &take, 1); },
         [&] { semop(semaphore, &give, 1); }, false});
  semctl(semaphore, 0, IPC_RMID);

  std::array<int, 2> end{};
  ASSERT_EQ(pipe2(end.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(end[1]);
    char ignored = 0;
    (void)!read(end[0], &ignored, 1);
    _exit(0);
  }
  close(end[0]);
  check({"wait4", SYS_wait4, [&] { return syscall(SYS_wait4, child, nullptr, 0, nullptr); }, [&] { close(end[1]); },
         true});

  for (const int fd : {in, out, sockets[0], sockets[1]}) close(fd);
}

}  // namespace
}  // namespace forksight::proc
