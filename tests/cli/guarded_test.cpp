// Tests run_guarded(): which status and output the caller gets if the reader (the child process) ends well, fails,
// crashes, or gets a signal.
#include "command/guarded.hpp"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "files/budgets.hpp"
#include "files/open_file.hpp"
#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"
#include "proc/reader_rights.hpp"

namespace forksight {
namespace {

struct Ended {
  int status = 0;    // as wait(2) gives it
  std::string text;  // standard output and standard error
};

// Calls run_guarded() in a child process. Sends `signal` to the child as soon as some output has arrived.
Ended run(const guard::Work& work, int signal = 0, const GuardedOptions& options = {}) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    const int status = run_guarded(work, options);
    std::fflush(nullptr);
    ::_exit(status);
  }
  ::close(ends[1]);
  Ended ended;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;) {
    ended.text.append(piece.data(), static_cast<std::size_t>(got));
    if (signal != 0) ::kill(child, std::exchange(signal, 0));
  }
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, &ended.status, 0), child);
  return ended;
}

TEST(Guarded, PassesOnStatusAndOutput) {
  const pid_t self = ::getpid();
  const Ended ended = run([&](const files::Reader&) {
    std::printf("report\n");
    std::fprintf(stderr, "progress\n");
    return ::getppid() == self ? 9 : 1;  // 9: the work ran in the process that called run_guarded()
  });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 1);
  EXPECT_NE(ended.text.find("report\n"), std::string::npos);
  EXPECT_NE(ended.text.find("progress\n"), std::string::npos);
}

TEST(Guarded, PassesOnMoreThanAPipeHolds) {
  const std::string line(1023, 'x');
  const Ended ended = run([&](const files::Reader&) {
    for (int i = 0; i < 1024; ++i) std::puts(line.c_str());
    return 0;
  });
  EXPECT_EQ(ended.text.size(), 1024U * 1024U);
}

// If a program that ignores SIGCHLD starts forksight, forksight also ignores SIGCHLD. Then the kernel reaps the
// children of forksight before forksight can ask for their status.
TEST(Guarded, LearnsTheStatusAlthoughSIGCHLDIsIgnored) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int status = run_guarded([](const files::Reader&) { return 1; });
    const bool is_ignored = std::signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    const char answer[2] = {static_cast<char>('0' + status), is_ignored ? 'i' : 'd'};
    ::_exit(::write(ends[1], answer, 2) == 2 ? 0 : 9);
  }
  ::close(ends[1]);
  std::array<char, 2> answer{};
  EXPECT_EQ(::read(ends[0], answer.data(), answer.size()), 2);
  EXPECT_EQ(std::string(answer.data(), 2), "1i");
  ::close(ends[0]);
  std::signal(SIGCHLD, before);
}

TEST(Guarded, SaysThatTheReaderCrashed) {
  const Ended ended = run([](const files::Reader&) {
    std::printf("half of a rep");
    std::fflush(stdout);
    std::raise(SIGTRAP);  // AddressSanitizer has no handler for SIGTRAP
    return 0;
  });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 3);
  EXPECT_NE(ended.text.find("was ended by signal 5"), std::string::npos) << ended.text;
}

// If there is no more memory, the kernel may send SIGKILL to the reader. The process that called run_guarded() goes on.
TEST(Guarded, SaysThatTheReaderWasKilled) {
  const Ended ended = run([](const files::Reader&) { return std::raise(SIGKILL); });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 3);
  EXPECT_NE(ended.text.find("was ended by signal 9"), std::string::npos) << ended.text;
}

// libdw calls exit(1) if there is no more memory. run_guarded() must not pass on this status, because status 1 of
// forksight means that something was found.
TEST(Guarded, AnExitInALibraryIsNoFinding) {
  const Ended ended = run([](const files::Reader&) -> int {
    std::printf("half of a rep");
    std::exit(1);
  });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 3);
  EXPECT_NE(ended.text.find("a library has ended the process"), std::string::npos) << ended.text;
  EXPECT_EQ(ended.text.find("half"), std::string::npos) << ended.text;
}

bool can_map(std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  ::munmap(at, bytes);
  return true;
}

TEST(Guarded, TheMemoryOfTheReaderIsLimited) {
  constexpr std::size_t kGiga = std::size_t{1} << 30U;
  constexpr std::size_t kMost = std::size_t{files::kMaxReaderBytes};
  ASSERT_TRUE(can_map(kMost + kGiga)) << "a limit of this test forbids it";
  const Ended ended = run([](const files::Reader&) { return can_map(kMost - kGiga) && !can_map(kMost + kGiga) ? 0 : 1; });
  EXPECT_EQ(ended.status, 0) << ended.text;
}

TEST(Guarded, SaysThatTheReaderHasNoMoreMemory) {
  const Ended ended = run([](const files::Reader&) -> int { throw std::bad_alloc(); });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 3);
  EXPECT_NE(ended.text.find("has no more memory"), std::string::npos) << ended.text;
}

TEST(Guarded, PrintsTheMessageOfAnException) {
  const Ended ended = run([](const files::Reader&) -> int { throw std::runtime_error("libfoo.so: cut off"); });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 3);
  EXPECT_NE(ended.text.find("libfoo.so: cut off"), std::string::npos) << ended.text;
}

// The process that called run_guarded() gets the signal. The signal ends this process and the reader.
TEST(Guarded, EndsWithItsChildAtASignal) {
  const Ended ended = run(
      [](const files::Reader&) {
        std::fprintf(stderr, "%d\n", static_cast<int>(::getpid()));
        for (;;) ::pause();
        return 0;
      },
      SIGTERM);
  ASSERT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_EQ(WTERMSIG(ended.status), SIGTERM);
  const pid_t reader = std::atoi(ended.text.c_str());
  ASSERT_GT(reader, 0);
  EXPECT_NE(::kill(reader, 0), 0);
}

// The reader ignores the signal. So a moment later, run_guarded() kills the reader.
TEST(Guarded, EndsAReaderThatIgnoresTheSignal) {
  const Ended ended = run(
      [](const files::Reader&) {
        std::signal(SIGTERM, SIG_IGN);
        std::fputs("ready\n", stderr);
        for (;;) ::pause();
        return 0;
      },
      SIGTERM);
  EXPECT_TRUE(WIFSIGNALED(ended.status));
}

// A call that would change something outside the reader.
struct Change {
  const char* what;
  std::function<long()> call;
};

std::vector<Change> list_changes(const std::string& file) {
  static int value = 0;
  return {
      {"write", [=] { return ::open(file.c_str(), O_WRONLY | O_CLOEXEC); }},
      {"write and read", [=] { return ::open(file.c_str(), O_RDWR | O_CLOEXEC); }},
      {"truncate", [=] { return ::open(file.c_str(), O_RDONLY | O_TRUNC | O_CLOEXEC); }},
      {"create", [=] { return ::open((file + ".new").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600); }},
      {"openat2", [=] { return ::syscall(SYS_openat2, AT_FDCWD, file.c_str(), nullptr, 0); }},
      {"unlink", [=] { return ::unlink(file.c_str()); }},
      {"rename", [=] { return ::rename(file.c_str(), (file + ".new").c_str()); }},
      {"chmod", [=] { return ::chmod(file.c_str(), 0777); }},
      {"execve", [] { return ::execl("/bin/true", "true", nullptr); }},
      {"internet socket", [] { return ::socket(AF_INET, SOCK_STREAM, 0); }},
      {"UNIX socket", [] { return ::socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"route socket", [] { return ::socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE); }},
      {"kill", [] { return ::kill(::getppid(), SIGURG); }},
      {"process_vm_writev",
       [] {
         iovec place{&value, sizeof value};
         return ::process_vm_writev(::getppid(), &place, 1, &place, 1, 0);
       }},
      {"poke of memory", [] { return ::ptrace(PTRACE_POKEDATA, ::getppid(), &value, 1L); }},
      {"poke of rip", [] { return ::ptrace(PTRACE_POKEUSER, ::getppid(), offsetof(user, regs.rip), -514L); }},
      {"poke of rax", [] { return ::ptrace(PTRACE_POKEUSER, ::getppid(), offsetof(user, regs.rax), 1L); }},
      {"registers",
       [] {
         user_regs_struct registers{};
         return ::ptrace(PTRACE_SETREGS, ::getppid(), nullptr, &registers);
       }},
      {"mount", [] { return ::mount("none", "/absent", "tmpfs", 0, nullptr); }},
      {"user namespace", [] { return ::unshare(CLONE_NEWUSER); }},
      {"io_uring", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"typing", [] { return ::ioctl(STDERR_FILENO, TIOCSTI, "x"); }},
      {"signals of a descriptor", [] { return ::fcntl(STDERR_FILENO, F_SETSIG, SIGKILL); }},
      {"mount options", [] { return ::syscall(433, AT_FDCWD, "/", 0); }},  // fspick()
      {"lock of a file",
       [=] {
         const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
         const int result = ::flock(fd, LOCK_EX | LOCK_NB);
         const int error = errno;
         ::close(fd);
         errno = error;
         return result;
       }},
      {"CPU affinity of another process",
       [] {
         cpu_set_t one;
         CPU_ZERO(&one);
         CPU_SET(0, &one);
         return ::sched_setaffinity(::getppid(), sizeof one, &one);
       }},
      {"shared memory", [] { return ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600); }},
  };
}

// The reader parses files of other users, so its filter must refuse each call of list_changes(). Without the filter,
// most of these calls would succeed for root.
TEST(Guarded, ReaderChangesNothing) {
  std::string file = testing::TempDir() + "forksight-reader-XXXXXX";
  const int made = ::mkstemp(file.data());
  ASSERT_GE(made, 0);
  ASSERT_EQ(::write(made, "kept", 4), 4);
  ::close(made);
  const Ended ended = run([&](const files::Reader&) {
    int refused = 0;
    int errors = 0;
    for (const Change& change : list_changes(file)) {
      errno = 0;
      const long result = change.call();
      if (result == -1 && errno == EPERM) {
        ++refused;
      } else {
        std::fprintf(stderr, "%s: %ld, %s\n", change.what, result, std::strerror(errno));
        ++errors;
      }
    }
    std::fprintf(stderr, "%d refused\n", refused);
    return errors == 0 ? 0 : 1;
  });
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("27 refused"), std::string::npos) << ended.text;
  struct stat status {};
  EXPECT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 4);
  ::unlink(file.c_str());
}

TEST(Guarded, ReaderReads) {
  const Ended ended = run([](const files::Reader&) {
    const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const int question = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    // If root runs the test, the reader has another user than its parent, and kill() fails with EPERM.
    const bool is_alive = ::kill(::getppid(), 0) == 0 || errno == EPERM;
    int value = 17;
    int copy = 0;
    iovec to{&copy, sizeof copy};
    iovec from{&value, sizeof value};
    const bool is_read = ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == sizeof copy && copy == 17;
    std::thread([] {}).join();
    return file >= 0 && question >= 0 && is_alive && is_read ? 0 : 1;
  });
  EXPECT_EQ(ended.status, 0) << ended.text;
}

// If root runs the command, the reader runs as another user and has no special rights over files. A second process of
// the command, the opener, keeps the rights of root. The opener opens the files that the report may need.
TEST(Guarded, ReaderOfRootHasGivenUpItsUser) {
  const bool gives_up = proc::may_give_up_user();
  std::string file = "/tmp/forksight-secret-XXXXXX";
  const int fd = ::mkstemp(file.data());
  ASSERT_GE(fd, 0);
  ::close(fd);
  for (const bool examines_processes : {false, true}) {
    const Ended ended = run(
        [&](const files::Reader&) {
          if (!gives_up) return ::geteuid() == proc::caller() ? 0 : 1;
          __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
          __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {};
          if (::syscall(SYS_capget, &header, has) != 0 || ::getgroups(0, nullptr) != 0) return 2;
          const std::uint32_t allowed = (1U << CAP_SYS_PTRACE) | (1U << CAP_IPC_OWNER);
          if ((has[0].permitted & ~(examines_processes ? allowed : 0)) != 0 || has[1].permitted != 0) return 3;
          if (::getuid() == 0 || ::geteuid() == 0 || ::getgid() == 0 || proc::caller() != 0) return 4;
          if (::setresuid(0, 0, 0) == 0) return 5;
          if (::open(file.c_str(), O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES) return 6;
          if (files::open_regular(file)) return 7;                   // the caller has not named this file
          if (!files::open_regular("/proc/self/exe")) return 8;      // everybody may read this file
          const auto links = proc::read_links(proc::proc_path(::getppid(), "fd"));
          return links.links.size() >= 3 ? 0 : 9;                    // only root may read these links
        },
        0, {.examines_processes = examines_processes});
    EXPECT_EQ(ended.status, 0) << ended.text;
  }
  ::unlink(file.c_str());
}

// Without CAP_KILL, root may not signal a process of another user. A reader with another user would then outlive the
// process that called run_guarded(). So in this case the reader keeps its user.
TEST(Guarded, ReaderOfRootThatMayNotKillEndsToo) {
  std::fflush(nullptr);
  const pid_t tester = ::fork();
  if (tester == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {};
    if (::syscall(SYS_capget, &header, has) != 0) ::_exit(2);
    has[0].effective &= ~(1U << CAP_KILL);
    has[0].permitted &= ~(1U << CAP_KILL);
    if (::syscall(SYS_capset, &header, has) != 0) ::_exit(2);
    const Ended ended = run(
        [](const files::Reader&) {
          std::fprintf(stderr, "%d\n", ::getpid());
          ::sleep(30);
          return 0;
        },
        SIGTERM);
    const pid_t reader = std::atoi(ended.text.c_str());
    if (reader <= 0 || !WIFSIGNALED(ended.status) || WTERMSIG(ended.status) != SIGTERM) ::_exit(3);
    // The reader has no parent any more. So init reaps the reader, which may take a moment.
    for (int i = 0; i < 100 && ::kill(reader, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::_exit(proc::is_ending({reader, proc::read_stat(reader) ? proc::read_stat(reader)->start_ticks : 0}) ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(tester, &status, 0), tester);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// The filter must allow the calls of image/stop.cpp. The code there stops a thread, and reads the registers of the
// thread. It also sets rax, so that the kernel restarts an interrupted system call.
TEST(Guarded, ReaderStopsThreads) {
  const Ended ended = run([](const files::Reader&) {
    const pid_t reader = ::getpid();
    const pid_t target = ::fork();
    if (target == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != reader) ::_exit(1);
      for (;;) ::pause();
    }
    user_regs_struct registers{};
    iovec room{&registers, sizeof registers};
    int status = 0;
    const bool is_stopped = ::ptrace(PTRACE_SEIZE, target, nullptr, nullptr) == 0 &&
                            ::ptrace(PTRACE_INTERRUPT, target, nullptr, nullptr) == 0 &&
                            ::waitpid(target, &status, __WALL) == target;
    const bool is_read = ::ptrace(PTRACE_GETREGSET, target, NT_PRSTATUS, &room) == 0;
    const bool is_repeated = ::ptrace(PTRACE_POKEUSER, target, offsetof(user, regs.rax), -514L) == 0;
    const bool is_released = ::ptrace(PTRACE_DETACH, target, nullptr, 0L) == 0;
    return is_stopped && is_read && is_repeated && is_released ? 0 : 1;
  }, 0, {.examines_processes = true});
  EXPECT_EQ(ended.status, 0) << ended.text;
}

}  // namespace
}  // namespace forksight
