// What a system call makes of a stop in the middle of it, call by call: the table in stop.cpp says only what is tried
// here.
#include "image/stop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>
#include <string>

#include "blocked_process.hpp"
#include "image/live.hpp"

namespace forksight::image {
namespace {

using test::BlockedProcess;

constexpr timespec kShort{0, 400'000'000};

// What calls block on, made before the fork, and how the test ends the wait.
struct Objects {
  Objects() {
    word = static_cast<std::atomic<std::uint32_t>*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    messages = msgget(IPC_PRIVATE, 0600);
    file = memfd_create("lock", MFD_CLOEXEC);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event interest{};
    interest.events = EPOLLIN;
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &interest);
  }
  ~Objects() {
    munmap(word, 4096);
    for (const int fd : {pipe_ends[0], pipe_ends[1], sockets[0], sockets[1], file, epoll}) close(fd);
    semctl(semaphore, 0, IPC_RMID);
    msgctl(messages, IPC_RMID, nullptr);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  void fill_pipe() const {
    fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK);
    const std::string page(4096, 'x');
    while (write(pipe_ends[1], page.data(), page.size()) > 0) {
    }
    fcntl(pipe_ends[1], F_SETFL, 0);
  }
  void write_byte() const { EXPECT_EQ(write(pipe_ends[1], "x", 1), 1); }
  void send_byte() const { EXPECT_EQ(write(sockets[1], "x", 1), 1); }
  void wake() const {
    *word = 1;
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t>* word;
  int pipe_ends[2];
  int sockets[2];
  int semaphore;
  int messages;
  int file;
  int epoll;
};

struct Case {
  const char* name;
  std::function<long(const Objects&)> call;
  std::function<void(const Objects&)> wake;  // empty: a timeout ends it
  long result = 0;
  int error = 0;
  bool is_allowed = true;  // by the table; else it is stopped by force, as if it had run when it was last seen
  std::function<void(const Objects&)> prepare = nullptr;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

long futex(const Objects& o, int operation, const timespec* timeout, unsigned value = 0) {
  return syscall(SYS_futex, o.word, operation, value, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
}

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
    // Owned by a task that there is: the first of all.
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
    {"recv",
     [](const Objects& o) {
       char byte;
       return recv(o.sockets[0], &byte, 1, 0);
     },
     &Objects::send_byte, 1},
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
    // These fail with EINTR when they are stopped: never by choice, and mended where it happens.
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
  for (const auto& value : *thread.registers) {
    if (!value) return false;
  }
  return true;
}

TEST_P(Stop, LeavesNoTraceInTheCall) {
  const Case& test = GetParam();
  const Objects objects;
  if (test.prepare) test.prepare(objects);
  BlockedProcess process([&] { return test.call(objects); });
  for (int round = 0; round < 3; ++round) {
    process.wait_blocked();
    auto image = open_live(process.pid(), {false, nullptr});
    ASSERT_TRUE(image) << image.error();
    Thread& thread = image->threads.front();
    if (!thread.call) break;  // a timeout has ended it
    EXPECT_EQ(may_be_stopped(thread), test.is_allowed) << thread.call->number;
    const watch::Syscall before = *thread.call;
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
  const BlockedProcess::Outcome outcome = process.wait_outcome();
  EXPECT_TRUE(outcome.is_done);
  EXPECT_EQ(outcome.result, test.result) << std::strerror(outcome.error);
  EXPECT_EQ(outcome.error, test.error) << std::strerror(outcome.error);
}

INSTANTIATE_TEST_SUITE_P(Calls, Stop, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace forksight::image
