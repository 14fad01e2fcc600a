// Tests that deaths are noticed, and that living members are not taken for dead. The members are stopped, traced,
// interrupted by signals, or have no free descriptor.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "child.hpp"
#include "invariants.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using test::send_number;
using testing::HasSubstr;

queue make(on_death policy, std::uint32_t buffers = 4) {
  options wanted;
  wanted.slots = 4;
  wanted.buffers = buffers;
  wanted.buffer_bytes = 64;
  wanted.after_death = policy;
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

void interrupted(int /*signal*/) {}

// A waiter usually looks for deaths when it has slept for a whole slice of time, which is at least 50 ms. Here a signal
// interrupts its sleep every millisecond, so no sleep lasts for a whole slice. The waiter must still notice the death.
TEST(Liveness, SignalsDoNotKeepASleeperFromSeeingADeath) {
  queue q = make(on_death::drop);
  const baton holds, waits;
  child holder([&] {
    auto own = q.reattach_after_fork();
    std::vector<loan> held;
    for (int i = 0; i < 4; ++i) held.push_back(std::move(own->acquire()).value());
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  child waiter([&] {
    struct sigaction action {};
    action.sa_handler = interrupted;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval storm{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &storm, nullptr);
    auto own = q.reattach_after_fork();
    if (own->acquire(deadline::now())) return 1;
    waits.pass();
    const auto start = deadline::clock::now();
    const auto got = own->acquire(deadline::after(20s));
    if (!got) return 2;
    // When the deadline of a call has passed, the call looks for deaths once more. The time shows whether the call
    // noticed the death before its deadline.
    return deadline::clock::now() - start < 10s ? 0 : 3;
  });
  waits.take();
  holder.kill_and_wait();
  EXPECT_EQ(waiter.wait(), 0);
}

// After this call, FUTEX_WAKE does nothing in this process, and reports success.
bool lose_wakes() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 127),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A waiter sleeps only for a slice of time, and then looks again. So a message arrives even if the wake-up is lost.
TEST(Liveness, ALostWakeUpOnlyDelaysTheMessage) {
  queue q = make(on_death::drop);
  const baton go;
  child sender([&] {
    auto own = q.reattach_after_fork();
    if (!own || !lose_wakes()) return 1;
    std::uint32_t unused = 0;
    if (syscall(SYS_futex, &unused, FUTEX_WAKE, 1, nullptr, nullptr, 0) != 0) return 2;
    for (std::uint32_t i = 0; i < 5; ++i) {
      go.take();
      // The message is sent only after the receiver is marked as waiting. The receiver gets this mark before it sleeps.
      while (true) {
        bool waits = false;
        for (const auto& one : own->inspect().participants) waits |= one.waits_for_message;
        if (waits) break;
        sched_yield();
      }
      if (!send_number(*own, i)) return 3;
    }
    return 0;
  });
  for (int i = 0; i < 5; ++i) {
    go.pass();
    const auto start = deadline::clock::now();
    EXPECT_TRUE(q.receive(deadline::after(20s)));
    EXPECT_LT(deadline::clock::now() - start, 10s);
  }
  EXPECT_EQ(sender.wait(), 0);
}

// Attaching needs two descriptors for a short time, and keeps one. After attaching, the process also uses the other
// one, which was the last free descriptor.
TEST(Liveness, AProcessWithoutADescriptorLeftIsNotDead) {
  queue q = make(on_death::drop);
  const baton holds, over;
  child poor([&] {
    const int next = dup(0), last = dup(0);
    close(next);
    const rlimit limit{static_cast<rlim_t>(last + 1), static_cast<rlim_t>(last + 1)};
    setrlimit(RLIMIT_NOFILE, &limit);
    // One free descriptor is too few. Attaching must fail: without the lock, nobody would notice the death of the
    // process.
    if (auto none = q.reattach_after_fork(); none || none.error().code != errc::fd_limit) return 4;
    close(last);
    auto own = q.reattach_after_fork();
    if (!own) return 1;
    if (dup(0) < 0) return 5;
    auto got = own->acquire(deadline::now());
    if (!got) return 2;
    holds.pass();
    over.take();
    return own->send(std::move(*got), 1) ? 0 : 3;
  });
  holds.take();
  EXPECT_EQ(q.recover(), 0u);
  over.pass();
  EXPECT_EQ(poor.wait(), 0);
  EXPECT_TRUE(q.receive(deadline::now()));
}

// A process without a free descriptor looks for deaths. It must not take a living process for dead, and must still
// notice that a process has ended.
TEST(Liveness, WithoutADescriptorNobodyIsTakenForDead) {
  queue q = make(on_death::drop);
  const baton ready, holds;
  child holder([&] {
    auto own = q.reattach_after_fork();
    auto got = own->acquire();
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  const baton ended;
  child poor([&] {
    auto own = q.reattach_after_fork();
    const rlimit limit{3, 3};
    setrlimit(RLIMIT_NOFILE, &limit);
    if (own->recover() != 0) return 1;
    ready.pass();
    ended.take();
    return test::recover_dead(*own) == 1 ? 0 : 2;
  });
  ready.take();
  holder.kill_and_wait();
  ended.pass();
  EXPECT_EQ(poor.wait(), 0);
}

TEST(Liveness, AStoppedProcessIsAliveAndNamed) {
  for (const bool as_consumer : {false, true}) {
    queue q = make(on_death::redeliver, 1);
    if (as_consumer) {
      ASSERT_TRUE(send_number(q, 1));
    }
    const baton holds;
    child stopped([&] {
      auto own = q.reattach_after_fork();
      loan lent;
      message taken;
      if (as_consumer) taken = std::move(own->receive()).value();
      if (!as_consumer) lent = std::move(own->acquire()).value();
      holds.pass();
      raise(SIGSTOP);
      if (as_consumer) return taken.release() ? 0 : 1;
      return own->send(std::move(lent), 1) ? 0 : 2;
    });
    holds.take();
    int status = 0;
    ASSERT_EQ(waitpid(stopped.pid(), &status, WUNTRACED), stopped.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
    // The call waits for several slices, so it looks for deaths several times.
    const auto refused = q.acquire(deadline::after(300ms));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::timeout);
    EXPECT_THAT(refused.error().text, HasSubstr((as_consumer ? "1 HELD by pid " : "1 LOANED by pid ") +
                                                std::to_string(stopped.pid()) + " (alive, state T"));
    EXPECT_EQ(q.recover(), 0u);
    stopped.signal(SIGCONT);
    EXPECT_EQ(stopped.wait(), 0);
    if (!as_consumer) {
      EXPECT_TRUE(q.receive(deadline::after(5s)));
    }
    EXPECT_TRUE(q.acquire(deadline::after(5s)));
  }
}

// A debugger has stopped the process. The process goes on when the debugger detaches.
TEST(Liveness, ATracedProcessIsAliveAndNamed) {
  queue q = make(on_death::redeliver, 1);
  const baton holds, over;
  child traced([&] {
    auto own = q.reattach_after_fork();
    auto lent = own->acquire();
    holds.pass();
    over.take();
    return own->send(std::move(*lent), 1) ? 0 : 1;
  });
  holds.take();
  ASSERT_EQ(ptrace(PTRACE_SEIZE, traced.pid(), nullptr, nullptr), 0) << std::strerror(errno);
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, traced.pid(), nullptr, nullptr), 0);
  int status = 0;
  ASSERT_EQ(waitpid(traced.pid(), &status, 0), traced.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  over.pass();
  const auto refused = q.acquire(deadline::after(300ms));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::timeout);
  EXPECT_THAT(refused.error().text, HasSubstr("1 LOANED by pid " + std::to_string(traced.pid()) + " (alive, state t"));
  EXPECT_EQ(q.recover(), 0u);
  ASSERT_EQ(ptrace(PTRACE_DETACH, traced.pid(), nullptr, nullptr), 0);
  EXPECT_EQ(traced.wait(), 0);
  EXPECT_TRUE(q.receive(deadline::after(5s)));
}

// A waiting call is woken again and again although there is no message. The call must not return early or miss a
// message.
TEST(Liveness, WakesWithoutAReasonChangeNothing) {
  queue q = make(on_death::drop);
  const baton waits;
  int ended[2];
  ASSERT_EQ(pipe2(ended, O_NONBLOCK | O_CLOEXEC), 0);
  child receiver([&] {
    auto own = q.reattach_after_fork();
    waits.pass();
    const auto start = deadline::clock::now();
    const auto got = own->receive(deadline::after(400ms));
    const auto took = deadline::clock::now() - start;
    if (write(ended[1], "", 1) != 1) return 4;
    if (got || got.error().code != errc::timeout) return 1;
    if (took < 400ms) return 2;
    return own->receive(deadline::after(20s)) ? 0 : 3;
  });
  waits.take();
  auto memory = detail::segment::open(detail::descriptor(dup(q.fd())));
  ASSERT_TRUE(memory);
  long woken = 0;
  const auto wake_all = [&] {
    for (std::uint32_t i = 0; i < memory->view().participant_count; ++i) {
      for (auto& word : memory->view().participants[i].wake) {
        woken += syscall(SYS_futex, word.address(), FUTEX_WAKE, 1, nullptr, nullptr, 0);
      }
    }
  };
  char byte = 0;
  while (read(ended[0], &byte, 1) != 1) wake_all();
  EXPECT_GT(woken, 100);
  for (int i = 0; i < 1000; ++i) wake_all();
  ASSERT_TRUE(send_number(q, 1));
  EXPECT_EQ(receiver.wait(), 0);
  for (const int fd : ended) close(fd);
}

bool has_file(const std::filesystem::path& folder, const struct stat& file) {
  std::error_code gone;
  for (const auto& one : std::filesystem::directory_iterator(folder, gone)) {
    struct stat about {};
    if (stat(one.path().c_str(), &about) == 0 && about.st_ino == file.st_ino && about.st_dev == file.st_dev)
      return true;
  }
  return false;
}

// Returns the number of processes that have the file open or mapped.
int users_of(const struct stat& file) {
  int users = 0;
  const std::string mapped = " " + std::to_string(file.st_ino) + " ";
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    if (process.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
    bool uses = has_file(process.path() / "fd", file);
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);) {
      uses |= line.find(mapped) != std::string::npos && line.find("/memfd:forksight-queue") != std::string::npos;
    }
    users += uses ? 1 : 0;
  }
  return users;
}

// When all users have been killed, no process has the queue's file open or mapped.
TEST(Liveness, AMemfdQueueEndsWithItsLastUser) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const baton all_there;
  child creator([&] {
    queue q = make(on_death::drop);
    child other([&] {
      auto own = q.reattach_after_fork();
      auto lent = own->acquire();
      all_there.pass();
      pause();
      return 0;
    });
    struct stat about {};
    if (fstat(q.fd(), &about) != 0 || write(ends[1], &about, sizeof about) != sizeof about) return 1;
    raise(SIGSTOP);
    return 0;
  });
  struct stat file {};
  ASSERT_EQ(read(ends[0], &file, sizeof file), static_cast<ssize_t>(sizeof file));
  all_there.take();
  EXPECT_EQ(users_of(file), 2);
  // The kernel kills the creator's child with the creator (PR_SET_PDEATHSIG). This process is the subreaper, so it
  // waits for that child.
  EXPECT_EQ(creator.kill_and_wait(), 128 + SIGKILL);
  int status = 0;
  EXPECT_GT(waitpid(-1, &status, 0), 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(users_of(file), 0);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  for (const int fd : ends) close(fd);
}

// A process ends in different ways while it holds a message and a loan. In each case the loan must become free. The
// message is lost with on_death::drop, and delivered to another consumer with on_death::redeliver.
TEST(Liveness, EveryEndWhileHoldingIsADeath) {
  const std::vector<std::function<void()>> ends = {
      [] { exit(0); },
      [] { _exit(0); },
      [] {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_CORE, &none);
        std::signal(SIGABRT, SIG_DFL);
        raise(SIGABRT);
      },
      [] {
        const rlimit none{0, 0};
        setrlimit(RLIMIT_CORE, &none);
        std::signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
      },
      [] { raise(SIGTERM); },
      [] { raise(SIGKILL); },
  };
  for (const on_death policy : {on_death::drop, on_death::redeliver}) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      queue q = make(policy);
      ASSERT_TRUE(send_number(q, 1));
      ASSERT_TRUE(send_number(q, 2));
      child holder([&] {
        auto own = new queue(std::move(q.reattach_after_fork()).value());
        auto held = new message(std::move(own->receive()).value());
        auto lent = new loan(std::move(own->acquire()).value());
        if (held->size() != sizeof(std::uint32_t) || lent->capacity() != 64) return 1;
        ends[i]();
        return 2;
      });
      EXPECT_NE(holder.wait(), 2) << i;
      const test::leftovers left = test::check_survivor(q);
      EXPECT_EQ(left.broken, "") << i;
      const std::vector<std::uint32_t> wanted =
          policy == on_death::drop ? std::vector<std::uint32_t>{2} : std::vector<std::uint32_t>{1, 2};
      EXPECT_EQ(left.numbers, wanted) << i;
    }
  }
}

}  // namespace
}  // namespace forksight::ipc
