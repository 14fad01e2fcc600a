// Tests how a process learns that a member lives: the kernel keeps a file lock for each living member. The lock must
// give the right answer across namespaces, after the member has closed its descriptors, and if the member has children.
#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "child.hpp"
#include "forksight/ipc/handover.hpp"
#include "invariants.hpp"
#include "memory_reader.hpp"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using testing::HasSubstr;

constexpr int kNotPermitted = 77;

queue make(strategy how = strategy::memfd, std::uint32_t members = 16) {
  options wanted;
  wanted.slots = 4;
  wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.backing = how;
  wanted.max_participants = members;
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

// Attaches, acquires a buffer, passes the baton, and waits until the process is killed.
int hold(const queue& q, const baton& holds) {
  auto own = q.reattach_after_fork();
  if (!own) return 1;
  auto lent = own->acquire(deadline::now());
  if (!lent) return 2;
  holds.pass();
  pause();
  return 0;
}

// Waits until a buffer of `q` is lent or the child has ended. Returns -1 if a buffer is lent. Otherwise returns the
// child's exit status, or 128 + the number of the signal that ended it.
int lent_or_ended(child& from, const queue& q) {
  int status = 0;
  pid_t ended = 0;
  while (q.inspect().loaned == 0 && (ended = waitpid(from.pid(), &status, WNOHANG)) == 0) sched_yield();
  if (ended == 0) return -1;
  from.forget();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Two processes in different time namespaces see different start times of the same process.
TEST(MemberLock, AnotherTimeNamespaceIsNoDeath) {
  queue q = make();
  const baton holds;
  child outer([&] {
    if (unshare(CLONE_NEWTIME) != 0) return kNotPermitted;
    std::ofstream offsets("/proc/self/timens_offsets");
    offsets << "boottime 864000 0\n";
    offsets.close();
    if (!offsets) return kNotPermitted;
    // The new time namespace applies only to children of this process.
    child holder([&] { return hold(q, holds); });
    return holder.wait();
  });
  if (const int ended = lent_or_ended(outer, q); ended >= 0) {
    if (ended == kNotPermitted) GTEST_SKIP() << "a time namespace: not permitted (CAP_SYS_ADMIN), or Linux before 5.6";
    FAIL() << ended;
  }
  holds.take();
  EXPECT_EQ(q.recover(), 0u);
  EXPECT_EQ(q.inspect().loaned, 1u);
  // The kernel kills the holder when its parent ends (PR_SET_PDEATHSIG). This process is not the holder's parent, so it
  // cannot wait for the holder, and polls instead.
  outer.kill_and_wait();
  EXPECT_EQ(test::recover_dead(q), 1u);
  EXPECT_EQ(test::check_survivor(q).broken, "");
}

// Runs `body` in a new pid namespace without a /proc, as bubblewrap does.
int without_proc(const std::function<int()>& body) {
  if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return kNotPermitted;
  child first([&] {
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("nothing", "/proc", "tmpfs", 0, nullptr) != 0) {
      return kNotPermitted;
    }
    return body();
  });
  return first.wait();
}

// One process holds a loan, and has pid 2 in its pid namespace. The other process is in another pid
// namespace, which has no process 2, and looks for dead processes.
TEST(MemberLock, WithoutProcNobodyIsTakenForDead) {
  queue q = make();
  const baton holds, over;
  child holder([&] {
    return without_proc([&] {
      child second([&] {
        auto own = q.reattach_after_fork();
        if (!own) return 1;
        auto lent = own->acquire(deadline::now());
        if (!lent) return 2;
        holds.pass();
        over.take();
        return own->send(std::move(*lent), 1) ? 0 : 3;
      });
      return second.wait();
    });
  });
  if (const int ended = lent_or_ended(holder, q); ended >= 0) {
    if (ended == kNotPermitted) GTEST_SKIP() << "a pid namespace: not permitted (CAP_SYS_ADMIN)";
    FAIL() << ended;
  }
  holds.take();
  child looker([&] {
    return without_proc([&] {
      auto own = q.reattach_after_fork();
      if (!own) return 1;
      if (own->recover() != 0) return 2;
      for (const auto& who : own->inspect().participants) {
        if (who.lives == snapshot::life::dead) return 3;
      }
      return 0;
    });
  });
  EXPECT_EQ(looker.wait(), 0);
  EXPECT_EQ(q.recover(), 0u);
  EXPECT_EQ(q.inspect().loaned, 1u);
  over.pass();
  EXPECT_EQ(holder.wait(), 0);
  EXPECT_TRUE(q.receive(deadline::now()));
}

// The kinds of new namespaces that in_spaces() makes. A process that makes a time or pid namespace does not enter the
// new namespace itself. Only the children that the process makes afterwards are in the new namespace.
struct spaces {
  bool user = false, mount = false, time = false, pid = false;

  std::string name() const {
    return std::string(user ? "user " : "") + (mount ? "mount " : "") + (time ? "time " : "") + (pid ? "pid " : "");
  }
};

// Runs `body` in a process in new namespaces. A new mount namespace has its own /dev/shm. With a new mount namespace
// and a new pid namespace, /proc is that of the new pid namespace. Otherwise /proc is that of the test.
int in_spaces(const spaces& of, const std::function<int()>& body) {
  const std::string user = std::to_string(geteuid()), group = std::to_string(getegid());
  const auto write_line = [](const char* path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    return file.good();
  };
  if (of.user) {
    if (unshare(CLONE_NEWUSER) != 0) return kNotPermitted;
    // In the new user namespace, this process is root.
    (void)write_line("/proc/self/setgroups", "deny");
    if (!write_line("/proc/self/uid_map", "0 " + user + " 1") ||
        !write_line("/proc/self/gid_map", "0 " + group + " 1")) {
      return kNotPermitted;
    }
  }
  const int flags = (of.mount ? CLONE_NEWNS : 0) | (of.time ? CLONE_NEWTIME : 0) | (of.pid ? CLONE_NEWPID : 0);
  if (unshare(flags) != 0) return kNotPermitted;
  if (of.time && !write_line("/proc/self/timens_offsets", "boottime 864000 0\nmonotonic 864000 0\n")) {
    return kNotPermitted;
  }
  if (of.mount && (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                   mount("test", "/dev/shm", "tmpfs", 0, nullptr) != 0)) {
    return kNotPermitted;
  }
  child inner([&] {
    if (of.mount && of.pid && mount("proc", "/proc", "proc", 0, nullptr) != 0) return kNotPermitted;
    return body();
  });
  return inner.wait();
}

// A process holds a loan in one set of namespaces, and another process looks for deaths in another set. While the
// holder lives, its loan stays. After its death, the loan becomes free.
TEST(MemberLock, TheMatrixOfNamespaces) {
  constexpr unsigned kSets = 16;
  const auto set_of = [](unsigned bits) {
    return spaces{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
  };
  unsigned tried = 0;
  for (unsigned pair = 0; pair < kSets * kSets; ++pair) {
    const spaces holders = set_of(pair % kSets), lookers = set_of(pair / kSets);
    const std::string where = "holder: " + holders.name() + ", looker: " + lookers.name();
    queue q = make();
    const baton holds;
    // Looks for deaths until `lent` buffers are on loan, but at most for the time `at_most`.
    const auto look = [&](std::uint32_t lent, deadline::clock::duration at_most) {
      child looker([&] {
        return in_spaces(lookers, [&] {
          auto own = q.reattach_after_fork();
          if (!own) return 1;
          const auto start = deadline::clock::now();
          do {
            (void)own->recover();
            if (own->inspect().loaned == lent) return 0;
            sched_yield();
          } while (deadline::clock::now() - start < at_most);
          return 2;
        });
      });
      return looker.wait();
    };
    child outer([&] { return in_spaces(holders, [&] { return hold(q, holds); }); });
    if (const int ended = lent_or_ended(outer, q); ended >= 0) {
      EXPECT_EQ(ended, kNotPermitted) << where;
      continue;
    }
    holds.take();
    const int while_alive = look(1, 0s);
    // The kernel kills the holder when its parent ends.
    outer.kill_and_wait();
    if (while_alive == kNotPermitted) continue;
    EXPECT_EQ(while_alive, 0) << where;
    EXPECT_EQ(look(0, 20s), 0) << "after the death; " << where;
    ++tried;
  }
  if (tried == 0) GTEST_SKIP() << "no namespace is permitted here";
  std::printf("%u pairs of sets of namespaces\n", tried);
}

// A bare clone() runs no atfork handlers, and the child keeps all open descriptors of its parent. The child must not
// make the dead parent look alive.
TEST(MemberLock, AClonedChildWithAllDescriptorsDoesNotKeepItsParentAlive) {
  for (const strategy how : {strategy::memfd, strategy::named}) {
    queue q = make(how);
    const baton holds;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    child holder([&] {
      auto own = q.reattach_after_fork();
      auto lent = own->acquire(deadline::now());
      const auto raw = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
      if (raw == 0) {
        const pid_t self = static_cast<pid_t>(syscall(SYS_getpid));
        (void)!write(ends[1], &self, sizeof self);
        for (;;) pause();
      }
      holds.pass();
      pause();
      return 0;
    });
    holds.take();
    pid_t raw = 0;
    ASSERT_EQ(read(ends[0], &raw, sizeof raw), static_cast<ssize_t>(sizeof raw));
    EXPECT_EQ(q.recover(), 0u);
    holder.kill_and_wait();
    EXPECT_EQ(kill(raw, 0), 0);
    EXPECT_EQ(test::recover_dead(q), 1u);
    EXPECT_EQ(q.inspect().loaned, 0u);
    kill(raw, SIGKILL);
    for (const int fd : ends) close(fd);
    shm_unlink(q.name().c_str());
  }
}

// One thread attaches again and again while another one forks. The fork may come at any step of an attach. No
// child may keep the lock of the parent's entry.
TEST(MemberLock, AForkDuringAnAttachKeepsNoLock) {
  queue q = make();
  const baton done;
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  child busy([&] {
    std::atomic<bool> stops{false};
    std::thread attaches([&] {
      while (!stops) (void)q.reattach_after_fork();
    });
    // Each of these children exits when nobody has the writing end of the pipe any more: at the end of the test, or
    // earlier if the test process ends.
    for (int i = 0; i < 100; ++i) {
      if (fork() == 0) {
        char byte = 0;
        close(ends[1]);
        (void)!read(ends[0], &byte, 1);
        _exit(0);
      }
    }
    stops = true;
    attaches.join();
    auto own = q.reattach_after_fork();
    for (int i = 0; i < 100; ++i) {
      auto again = q.reattach_after_fork();
      if (!again) return 1;
    }
    done.pass();
    pause();
    return 0;
  });
  done.take();
  EXPECT_EQ(q.inspect().participants.size(), 2u);
  // All free entries of the queue can be taken, so no child keeps the lock of a free entry.
  std::vector<queue> all;
  for (int i = 0; i < 14; ++i) {
    auto one = queue::attach(q.fd());
    ASSERT_TRUE(one) << i << ": " << one.error().text;
    all.push_back(std::move(one).value());
  }
  all.clear();
  busy.kill_and_wait();
  EXPECT_EQ(test::recover_dead(q), 1u);
  for (const int fd : ends) close(fd);
}

// After this call, pidfd_open() fails with EPERM in this process.
bool refuse_pidfds() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A process is killed while another process reads its command line. Until the read ends, the kernel keeps the lock of
// the dead process, so the dead process looks alive.
class ReadMember : public testing::Test {
 protected:
  explicit ReadMember(strategy how = strategy::memfd) : q_(make(how, 2)) {}
  // Kills the holder, and leaves `reader_` in its read.
  void SetUp() override {
    child holder([&] { return hold(q_, holds_); });
    holds_.take();
    reader_ = std::make_unique<test::memory_reader>(holder.pid());
    if (!reader_->reads()) GTEST_SKIP() << "userfaultfd for system calls: not permitted (CAP_SYS_PTRACE)";
    EXPECT_EQ(holder.kill_and_wait(), 128 + SIGKILL);
  }
  // Ends the read 100 ms after this call. Others can wait for that meanwhile.
  std::thread end_soon() {
    return std::thread([this] {
      std::this_thread::sleep_for(100ms);
      reader_->end();
    });
  }

  queue q_;
  const baton holds_;
  std::unique_ptr<test::memory_reader> reader_;
};

class ReadUser : public ReadMember {
 protected:
  ReadUser() : ReadMember(strategy::named) {}
  void TearDown() override { shm_unlink(name_.c_str()); }
  const std::string name_ = q_.name();
};

TEST_F(ReadMember, IsRecoveredAfterTheRead) {
  EXPECT_EQ(q_.recover(), 0u);
  const snapshot now = q_.inspect();
  EXPECT_EQ(now.loaned, 1u);
  ASSERT_EQ(now.participants.size(), 2u);
  EXPECT_EQ(now.participants[1].lives, snapshot::life::alive);
  reader_->end();
  EXPECT_EQ(q_.recover(), 1u);
  EXPECT_EQ(q_.inspect().loaned, 0u);
  EXPECT_EQ(test::check_survivor(q_).broken, "");
}

// step_kill judges a queue with check_survivor(). It must not take an entry that is freed a moment later for a lost one.
TEST_F(ReadMember, TheCheckOfASurvivorWaitsForTheRead) {
  std::thread ends = end_soon();
  EXPECT_EQ(test::check_survivor(q_).broken, "");
  ends.join();
}

// step_kill lets a process recover only after this wait. If that process came too early, it would recover nobody.
TEST_F(ReadMember, OneRecoveryIsEnoughAfterTheWait) {
  std::thread ends = end_soon();
  EXPECT_EQ(test::wait_for_deaths(q_, 1), "");
  EXPECT_EQ(q_.recover(), 1u);
  ends.join();
}

// The table has two entries: one of this process, and one of the dead process. A process that is started in the place of
// the dead one must be able to attach.
TEST_F(ReadMember, AttachWaitsForTheEntry) {
  std::thread ends = end_soon();
  auto next = queue::attach(q_.fd());
  EXPECT_TRUE(next) << next.error().text;
  ends.join();
}

// The read does not end. The attempt to attach gives up after a second.
TEST_F(ReadMember, AttachDoesNotWaitForEver) {
  const auto before = deadline::clock::now();
  const auto refused = queue::attach(q_.fd());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_participant);
  EXPECT_GE(deadline::clock::now() - before, 1s);
}

TEST_F(ReadUser, HasTheQueueOpenUntilTheReadEnds) {
  q_ = {};
  const auto kept = gc(true);
  ASSERT_TRUE(kept.has_value());
  EXPECT_THAT(kept->in_use, testing::Contains(name_));
  std::thread ends = end_soon();
  EXPECT_TRUE(test::wait_until_unused(name_));
  const auto removed = gc(true);
  ASSERT_TRUE(removed.has_value());
  EXPECT_THAT(removed->removed, testing::Contains(name_));
  ends.join();
}

// A killed process that nobody has waited for is a zombie. A process that cannot open a pidfd must still take the
// zombie for dead.
void expect_a_zombie_is_dead(const queue& q) {
  siginfo_t how{};
  const baton holds;
  child holder([&] { return hold(q, holds); });
  holds.take();
  holder.signal(SIGKILL);
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(holder.pid()), &how, WEXITED | WNOWAIT), 0);
  child looker([&] {
    if (!refuse_pidfds()) return 1;
    auto own = q.reattach_after_fork();
    if (!own) return 2;
    (void)own->recover();
    return own->inspect().loaned == 0 ? 0 : 3;
  });
  EXPECT_EQ(looker.wait(), 0);
  EXPECT_EQ(q.inspect().participants.size(), 1u);
}

TEST(MemberLock, AZombieIsDeadWithoutAPidfd) { expect_a_zombie_is_dead(make()); }

TEST(MemberLock, AZombieIsDeadForAProcessWithoutAFreeDescriptor) {
  queue q = make();
  const baton looks, ended, holds;
  child looker([&] {
    auto own = q.reattach_after_fork();
    if (!own) return 1;
    const rlimit none{3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    looks.pass();
    ended.take();
    return test::recover_dead(*own) == 1 && own->inspect().loaned == 0 ? 0 : 2;
  });
  looks.take();
  child holder([&] { return hold(q, holds); });
  holds.take();
  holder.signal(SIGKILL);
  siginfo_t how{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(holder.pid()), &how, WEXITED | WNOWAIT), 0);
  ended.pass();
  EXPECT_EQ(looker.wait(), 0);
}

// After this call, fcntl() fails with this error in this process if it examines, takes or releases a lock of an open
// file description. In real sandboxes, a seccomp filter may let such a call fail with EPERM. In gVisor it fails with
// EINVAL, because gVisor does not have such locks.
bool refuse_locks(int error) {
  constexpr std::uint32_t kCommand = offsetof(seccomp_data, args) + sizeof(std::uint64_t);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kCommand),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, F_OFD_GETLK, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, F_OFD_SETLKW, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A process without locks works with the queue. It is not taken for dead, and takes nobody for dead. The error texts
// say that nothing shows whether the process lives.
TEST(MemberLock, WhereLocksAreRefusedNobodyIsTakenForDead) {
  for (const int error : {EPERM, EINVAL, ENOSYS}) {
    for (const strategy how : {strategy::memfd, strategy::named}) {
      queue q = make(how, 2);
      const baton holds;
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      child holder([&] {
        if (!refuse_locks(error)) return 1;
        auto own = q.reattach_after_fork();
        if (!own) {
          (void)!write(ends[1], own.error().text.c_str(), own.error().text.size());
          holds.pass();
          return 2;
        }
        auto lent = own->acquire(deadline::now());
        if (!lent) return 3;
        if (own->recover() != 0) return 4;
        std::vector<loan> rest;
        while (auto one = own->acquire(deadline::now())) rest.push_back(std::move(*one));
        const std::string text = own->acquire(deadline::after(1ms)).error().text;
        rest.clear();
        (void)!write(ends[1], text.c_str(), text.size());
        holds.pass();
        pause();
        return 0;
      });
      holds.take();
      char text[1024];
      const ssize_t size = read(ends[0], text, sizeof text);
      const std::string said(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
      const std::string pid = "pid " + std::to_string(holder.pid());
      EXPECT_THAT(said, HasSubstr("4 LOANED by " + pid + " (it has no lock that shows whether it lives"));
      EXPECT_EQ(q.recover(), 0u);
      EXPECT_EQ(q.inspect().loaned, 1u);
      const auto third = queue::attach(q.fd());
      ASSERT_FALSE(third);
      EXPECT_EQ(third.error().code, errc::no_participant);
      EXPECT_THAT(third.error().text, HasSubstr("max_participants is 2, and that many handles are attached already, by live "
                                                "processes, and by processes that may be dead, because nothing "
                                                "shows whether they live (1 handle): "));
      if (how == strategy::named) {
        // The queue is in use, so gc() must keep its name.
        const std::string name = q.name();
        q = {};
        auto looked = gc(true);
        ASSERT_TRUE(looked);
        EXPECT_THAT(looked->in_use, testing::Contains(name));
        shm_unlink(name.c_str());
        continue;
      }
      // The holder's death cannot be noticed, so its loan is never taken away.
      holder.kill_and_wait();
      EXPECT_EQ(q.recover(), 0u);
      EXPECT_EQ(q.inspect().loaned, 1u);
      for (const int fd : ends) close(fd);
    }
  }
}

// The kernel refuses all calls for locks in this process. Its peer has a lock.
TEST(MemberLock, AProcessThatCannotLookAtLocksSaysSo) {
  queue q = make();
  std::vector<loan> all;
  while (auto one = q.acquire(deadline::now())) all.push_back(std::move(*one));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  child looker([&] {
    if (!refuse_locks(EPERM)) return 1;
    auto own = q.reattach_after_fork();
    if (!own) return 2;
    const std::string text = own->acquire(deadline::after(1ms)).error().text;
    return write(ends[1], text.c_str(), text.size()) > 0 ? 0 : 3;
  });
  EXPECT_EQ(looker.wait(), 0);
  close(ends[1]);
  char text[1024];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  EXPECT_THAT(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))),
              HasSubstr("4 LOANED by pid " + std::to_string(getpid()) + " (this process cannot see whether it lives"));
}

// After an exec, the new program does not have the handle. The entry of the process and its loan become free.
TEST(MemberLock, ExecGivesTheEntryBack) {
  queue q = make();
  const baton holds;
  child becomes([&] {
    auto own = q.reattach_after_fork();
    auto lent = own->acquire(deadline::now());
    holds.pass();
    execl("/bin/sleep", "sleep", "60", nullptr);
    return 1;
  });
  holds.take();
  EXPECT_EQ(test::recover_dead(q), 1u);
  EXPECT_EQ(q.inspect().participants.size(), 1u);
  EXPECT_EQ(q.inspect().loaned, 0u);
  EXPECT_EQ(kill(becomes.pid(), 0), 0);
}

std::size_t open_descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  std::size_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST(MemberLock, PeersCostNoDescriptor) {
  constexpr std::size_t kPeers = 200;
  queue q = make(strategy::memfd, 255);
  std::vector<std::unique_ptr<child>> peers;
  const baton there;
  const std::size_t before = open_descriptors();
  for (std::size_t i = 0; i < kPeers; ++i) {
    peers.push_back(std::make_unique<child>([&] {
      auto own = q.reattach_after_fork();
      if (!own) return 1;
      there.pass();
      pause();
      return 0;
    }));
  }
  for (std::size_t i = 0; i < kPeers; ++i) there.take();
  EXPECT_EQ(q.recover(), 0u);
  EXPECT_FALSE(q.receive(deadline::after(1ms)));
  EXPECT_EQ(open_descriptors(), before);
  for (auto& peer : peers) peer->kill_and_wait();
  const std::size_t dead = test::recover_dead(q, kPeers);
  EXPECT_EQ(dead, kPeers);
}

// A daemon often closes all its descriptors, also the descriptor of its queue. Then it opens its log, which gets the
// same number. The others must not take the daemon for dead, and the daemon must not take the others for dead.
TEST(MemberLock, AProcessThatClosedTheQueuesDescriptorLivesAndTakesNobodyForDead) {
  queue q = make();
  const baton holds, closed, over;
  child holder([&] { return hold(q, holds); });
  holds.take();
  child daemon([&] {
    auto own = q.reattach_after_fork();
    if (!own) return 1;
    auto lent = own->acquire(deadline::now());
    if (!lent) return 2;
    const int fd = own->fd();
    close(fd);
    const int log = memfd_create("log", 0);
    if (log != fd && dup2(log, fd) != fd) return 3;
    if (own->recover() != 0) return 4;
    closed.pass();
    over.take();
    return own->send(std::move(*lent), 1) ? 0 : 5;
  });
  closed.take();
  EXPECT_EQ(q.recover(), 0u);
  EXPECT_EQ(q.inspect().loaned, 2u);
  over.pass();
  EXPECT_EQ(daemon.wait(), 0);
}

// When a handle is closed, its entry is free at once.
TEST(MemberLock, AClosedHandleFreesItsEntry) {
  queue q = make(strategy::memfd, 2);
  for (int i = 0; i < 1000; ++i) {
    auto one = queue::attach(q.fd());
    ASSERT_TRUE(one) << i << ": " << one.error().text;
  }
}

// A forked child inherits the queue's descriptor, but is not a user of the queue. gc() may remove the name when the
// last user has ended.
TEST(MemberLock, AForkedChildThatDoesNotAttachDoesNotKeepTheName) {
  const baton over;
  std::string name;
  auto q = std::make_unique<queue>(make(strategy::named));
  name = q->name();
  child idle([&] {
    over.take();
    return 0;
  });
  auto kept = gc(false);
  ASSERT_TRUE(kept);
  EXPECT_THAT(kept->in_use, testing::Contains(name));
  q.reset();
  auto removed = gc(false);
  ASSERT_TRUE(removed);
  EXPECT_THAT(removed->removed, testing::Contains(name));
  over.pass();
  EXPECT_EQ(idle.wait(), 0);
}

// While gc() examines a queue, it holds an exclusive lock on the queue's file. A process that attaches meanwhile waits
// until gc() has released the lock.
TEST(MemberLock, AttachWaitsWhileGcHoldsTheLock) {
  queue q = make(strategy::named);
  const std::string name = q.name();
  const int looks = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
  ASSERT_GE(looks, 0);
  q = {};
  ASSERT_EQ(flock(looks, LOCK_EX | LOCK_NB), 0);
  std::atomic<bool> is_over{false};
  std::thread ends([&] {
    std::this_thread::sleep_for(50ms);
    is_over = true;
    flock(looks, LOCK_UN);
  });
  auto one = queue::attach(name);
  EXPECT_TRUE(is_over);
  EXPECT_TRUE(one) << one.error().text;
  ends.join();
  close(looks);
  shm_unlink(name.c_str());
}

}  // namespace
}  // namespace forksight::ipc
