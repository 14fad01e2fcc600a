// Tests that a system call has the right result if its thread is stopped during the call. Each family of calls in the
// table of stop.cpp has a case here.
#include "image/stop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "blocked_process.hpp"
#include "blocking_objects.hpp"
#include "image/live.hpp"

namespace forksight::image {
namespace {

using test::BlockedProcess;
using Objects = test::BlockingObjects;

constexpr timespec kShort{0, 400'000'000};

struct Case {
  const char* name;
  std::function<long(const Objects&)> call;
  std::function<void(const Objects&)> wake;  // empty: a timeout ends the wait
  long result = 0;
  int error = 0;
  // Whether the table must allow a stop of the call. If not, the test pretends that the thread is running, so that
  // forksight stops the thread nevertheless.
  bool is_allowed = true;
  std::function<void(const Objects&)> prepare = nullptr;
  int signal = 0;  // the signal that ends the wait; 0: none
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

long futex(const Objects& o, int operation, const timespec* timeout, unsigned value = 0) {
  return syscall(SYS_futex, o.word, operation, value, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
}

volatile int g_signals = 0;

void note_signal(int) { g_signals = g_signals + 1; }

struct Message {
  long type = 1;
  char text[1] = {};
};

const Case kCases[] = {
    {"futex_wait", [](const Objects& o) { return futex(o, FUTEX_WAIT, nullptr); }, &Objects::wake},
    {"futex_wait_timeout", [](const Objects& o) { return futex(o, FUTEX_WAIT, &kShort); }, nullptr, -1, ETIMEDOUT},
    {"futex_wait_bitset", [](const Objects& o) { return futex(o, FUTEX_WAIT_BITSET, nullptr); }, &Objects::wake},
    {"futex_wait_bitset_timeout",
     [](const Objects& o) {
       timespec until{};
       clock_gettime(CLOCK_MONOTONIC, &until);
       ++until.tv_sec;
       return futex(o, FUTEX_WAIT_BITSET, &until);
     },
     nullptr, -1, ETIMEDOUT},
    // The word of the lock names the test process, which is alive, as its owner.
    {"futex_lock_pi",
     [](const Objects& o) {
       timespec until{};
       clock_gettime(CLOCK_REALTIME, &until);
       ++until.tv_sec;
       return futex(o, FUTEX_LOCK_PI, &until);
     },
     nullptr, -1, ETIMEDOUT, true, [](const Objects& o) { *o.word = static_cast<std::uint32_t>(getpid()); }},
    {"read_pipe",
     [](const Objects& o) {
       char byte;
       return read(o.pipe_ends[0], &byte, 1);
     },
     &Objects::write_byte, 1},
    {"read_socket_timeout",
     [](const Objects& o) {
       const timeval timeout{30, 0};
       setsockopt(o.sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
       char byte;
       return read(o.sockets[0], &byte, 1);
     },
     &Objects::send_byte, 1},
    {"readv",
     [](const Objects& o) {
       char byte;
       const iovec piece{&byte, 1};
       return readv(o.pipe_ends[0], &piece, 1);
     },
     &Objects::write_byte, 1},
    {"send",
     [](const Objects& o) {
       const std::string page(4096, 'x');
       return send(o.sockets[0], page.data(), page.size(), 0);
     },
     [](const Objects& o) {
       std::string room(1U << 20U, 'x');
       EXPECT_GT(read(o.sockets[1], room.data(), room.size()), 0);
     },
     4096, 0, true,
     [](const Objects& o) {
       const std::string page(4096, 'x');
       while (send(o.sockets[0], page.data(), page.size(), MSG_DONTWAIT) > 0) {
       }
     }},
    {"msgsnd",
     [](const Objects& o) {
       Message message;
       return static_cast<long>(msgsnd(o.messages, &message, 1, 0));
     },
     [](const Objects& o) {
       Message message;
       EXPECT_EQ(msgrcv(o.messages, &message, 1, 0, 0), 1);
     },
     0, 0, true,
     [](const Objects& o) {
       const Message message;
       while (msgsnd(o.messages, &message, 1, IPC_NOWAIT) == 0) {
       }
     }},
    {"sigsuspend",
     [](const Objects&) {
       sigset_t none;
       sigemptyset(&none);
       signal(SIGUSR1, note_signal);
       sigsuspend(&none);
       return g_signals == 1 ? 1L : 0L;
     },
     nullptr, 1, 0, true, nullptr, SIGUSR1},
    {"pause",
     [](const Objects&) {
       signal(SIGUSR1, note_signal);
       pause();
       return g_signals == 1 ? 1L : 0L;
     },
     nullptr, 1, 0, true, nullptr, SIGUSR1},
    {"recv",
     [](const Objects& o) {
       char byte;
       return recv(o.sockets[0], &byte, 1, 0);
     },
     &Objects::send_byte, 1},
    {"recv_timeout",
     [](const Objects& o) {
       const timeval timeout{1, 0};
       setsockopt(o.sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
       char byte;
       return recv(o.sockets[0], &byte, 1, 0);
     },
     nullptr, -1, EAGAIN},
    {"recvmsg_timeout",
     [](const Objects& o) {
       const timeval timeout{30, 0};
       setsockopt(o.sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
       char byte;
       iovec piece{&byte, 1};
       msghdr message{};
       message.msg_iov = &piece;
       message.msg_iovlen = 1;
       return recvmsg(o.sockets[0], &message, 0);
     },
     &Objects::send_byte, 1},
    {"write_pipe", [](const Objects& o) { return write(o.pipe_ends[1], "x", 1); },
     [](const Objects& o) {
       char room[4096];
       EXPECT_EQ(read(o.pipe_ends[0], room, sizeof room), 4096);
     },
     1, 0, true, &Objects::fill_pipe},
    {"wait4",
     [](const Objects& o) {
       const pid_t child = fork();
       if (child == 0) {
         char byte;
         _exit(read(o.pipe_ends[0], &byte, 1) == 1 ? 0 : 1);
       }
       return wait4(child, nullptr, 0, nullptr) == child ? 7L : -1L;
     },
     &Objects::write_byte, 7},
    {"waitid",
     [](const Objects& o) {
       const pid_t child = fork();
       if (child == 0) {
         char byte;
         _exit(read(o.pipe_ends[0], &byte, 1) == 1 ? 0 : 1);
       }
       siginfo_t info{};
       return static_cast<long>(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED));
     },
     &Objects::write_byte},
    {"flock",
     [](const Objects& o) {
       const std::string path = "/proc/self/fd/" + std::to_string(o.file);
       return static_cast<long>(flock(open(path.c_str(), O_RDWR), LOCK_EX));
     },
     [](const Objects& o) { flock(o.file, LOCK_UN); }, 0, 0, true, [](const Objects& o) { flock(o.file, LOCK_EX); }},
    {"fcntl_setlkw",
     [](const Objects& o) {
       struct flock lock {};
       lock.l_type = F_WRLCK;
       return static_cast<long>(fcntl(o.file, F_SETLKW, &lock));
     },
     [](const Objects& o) {
       struct flock lock {};
       lock.l_type = F_UNLCK;
       fcntl(o.file, F_SETLK, &lock);
     },
     0, 0, true,
     [](const Objects& o) {
       struct flock lock {};
       lock.l_type = F_WRLCK;
       fcntl(o.file, F_SETLK, &lock);
     }},
    {"poll",
     [](const Objects& o) {
       pollfd watched{o.pipe_ends[0], POLLIN, 0};
       return static_cast<long>(poll(&watched, 1, -1));
     },
     &Objects::write_byte, 1},
    {"poll_timeout",
     [](const Objects& o) {
       pollfd watched{o.pipe_ends[0], POLLIN, 0};
       return static_cast<long>(poll(&watched, 1, 400));
     },
     nullptr, 0},
    {"ppoll_timeout",
     [](const Objects& o) {
       pollfd watched{o.pipe_ends[0], POLLIN, 0};
       return static_cast<long>(ppoll(&watched, 1, &kShort, nullptr));
     },
     nullptr, 0},
    {"select",
     [](const Objects& o) {
       fd_set set;
       FD_ZERO(&set);
       FD_SET(o.pipe_ends[0], &set);
       return static_cast<long>(select(o.pipe_ends[0] + 1, &set, nullptr, nullptr, nullptr));
     },
     &Objects::write_byte, 1},
    {"pselect_timeout",
     [](const Objects&) { return static_cast<long>(pselect(0, nullptr, nullptr, nullptr, &kShort, nullptr)); }, nullptr,
     0},
    {"nanosleep", [](const Objects&) { return syscall(SYS_nanosleep, &kShort, nullptr); }, nullptr, 0},
    {"clock_nanosleep",
     [](const Objects&) { return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &kShort, nullptr); }, nullptr, 0},
    {"accept",
     [](const Objects& o) {
       const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
       sockaddr_un name{};
       name.sun_family = AF_UNIX;
       const timeval timeout{1, 0};
       setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
       EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name.sun_family), 0);
       EXPECT_EQ(listen(listener, 1), 0);
       static_cast<void>(o);
       return static_cast<long>(accept(listener, nullptr, nullptr));
     },
     nullptr, -1, EAGAIN},
    {"msgrcv",
     [](const Objects& o) {
       Message message;
       return static_cast<long>(msgrcv(o.messages, &message, 1, 0, 0));
     },
     [](const Objects& o) {
       Message message;
       EXPECT_EQ(msgsnd(o.messages, &message, 1, 0), 0);
     },
     1},
    {"open_fifo",
     [](const Objects&) {
       const std::string path = "/tmp/forksight_fifo_" + std::to_string(getppid());
       return open(path.c_str(), O_RDONLY) >= 0 ? 5L : -1L;
     },
     [](const Objects&) {
       const std::string path = "/tmp/forksight_fifo_" + std::to_string(getpid());
       close(open(path.c_str(), O_WRONLY));
       unlink(path.c_str());
     },
     5, 0, true,
     [](const Objects&) {
       const std::string path = "/tmp/forksight_fifo_" + std::to_string(getpid());
       unlink(path.c_str());
       EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
     }},
    // These calls fail with EINTR if their thread is stopped. So forksight does not stop a thread that is in such a
    // call. If a thread enters the call before a stop takes effect, forksight lets the kernel repeat the call.
    {"epoll_wait",
     [](const Objects& o) {
       epoll_event event{};
       return static_cast<long>(epoll_wait(o.epoll, &event, 1, -1));
     },
     &Objects::write_byte, 1, 0, false},
    {"epoll_wait_timeout",
     [](const Objects& o) {
       epoll_event event{};
       return static_cast<long>(epoll_wait(o.epoll, &event, 1, 400));
     },
     nullptr, 0, 0, false},
    {"epoll_pwait",
     [](const Objects& o) {
       epoll_event event{};
       sigset_t none;
       sigemptyset(&none);
       return static_cast<long>(epoll_pwait(o.epoll, &event, 1, -1, &none));
     },
     &Objects::write_byte, 1, 0, false},
    {"semop",
     [](const Objects& o) {
       sembuf down{0, -1, 0};
       return static_cast<long>(semop(o.semaphore, &down, 1));
     },
     [](const Objects& o) {
       sembuf up{0, 1, 0};
       EXPECT_EQ(semop(o.semaphore, &up, 1), 0);
     },
     0, 0, false},
    {"semtimedop",
     [](const Objects& o) {
       sembuf down{0, -1, 0};
       const timespec timeout{1, 0};
       return static_cast<long>(semtimedop(o.semaphore, &down, 1, &timeout));
     },
     nullptr, -1, EAGAIN, false},
    {"sigtimedwait",
     [](const Objects&) {
       sigset_t set;
       sigemptyset(&set);
       sigaddset(&set, SIGUSR1);
       sigprocmask(SIG_BLOCK, &set, nullptr);
       const timespec timeout{1, 0};
       return static_cast<long>(sigtimedwait(&set, nullptr, &timeout));
     },
     nullptr, -1, EAGAIN, false},
    {"io_getevents",
     [](const Objects&) {
       aio_context_t context = 0;
       if (syscall(SYS_io_setup, 1, &context) != 0) return -1L;
       io_event event{};
       return syscall(SYS_io_getevents, context, 1L, 1L, &event, &kShort);
     },
     nullptr, 0, 0, false},
};

class Stop : public testing::TestWithParam<Case> {};

bool has_all_registers(const Thread& thread) {
  if (!thread.registers) return false;
  for (const auto& value : symbols::Registers(*thread.registers)) {
    if (!value) return false;
  }
  return true;
}

TEST_P(Stop, DoesNotChangeTheResultOfTheCall) {
  const Case& test = GetParam();
  const Objects objects;
  if (test.prepare) test.prepare(objects);
  BlockedProcess process([&] { return test.call(objects); });
  for (int round = 0; round < 3; ++round) {
    process.wait_blocked();
    auto image = open_live(process.pid(), {false, nullptr});
    ASSERT_TRUE(image) << image.error();
    Thread& thread = image->threads.front();
    if (!thread.call) break;  // a timeout has ended the call
    EXPECT_EQ(may_be_stopped(thread), test.is_allowed) << thread.call->number;
    const proc::Syscall before = *thread.call;
    if (!test.is_allowed) thread.state = 'R';
    const std::int32_t tid = thread.tid;
    stop_and_read_registers(image.value(), {&tid, 1});
    EXPECT_TRUE(has_all_registers(thread));
    EXPECT_NE(thread.fs_base, 0U);
    EXPECT_TRUE(image->limits.empty()) << image->limits.front();
    if (thread.call) {
      EXPECT_EQ(thread.call->pc, before.pc);
    }
  }
  process.wait_blocked();
  if (test.wake) test.wake(objects);
  if (test.signal != 0) kill(process.pid(), test.signal);
  const BlockedProcess::Outcome outcome = process.wait_outcome();
  EXPECT_TRUE(outcome.is_done);
  EXPECT_EQ(outcome.result, test.result) << std::strerror(outcome.error);
  EXPECT_EQ(outcome.error, test.error) << std::strerror(outcome.error);
}

// A stop in a write of more than 4096 bytes could make the call return fewer bytes.
TEST(StopTable, AWriteOfMoreThanAPageIsNotStopped) {
  Thread thread;
  thread.state = 'S';
  thread.call.emplace();
  thread.call->in_syscall = true;
  for (const std::int64_t number : {SYS_write, SYS_sendto}) {
    thread.call->number = number;
    thread.call->args[2] = 4096;
    EXPECT_TRUE(may_be_stopped(thread)) << number;
    thread.call->args[2] = 4097;
    EXPECT_FALSE(may_be_stopped(thread)) << number;
  }
  for (const std::int64_t number : {SYS_writev, SYS_sendmsg}) {
    thread.call->number = number;
    EXPECT_FALSE(may_be_stopped(thread)) << number;
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, Stop, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace forksight::image
