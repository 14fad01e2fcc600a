// What says that a member lives: the lock that the kernel keeps for it, whatever namespaces there are between it and
// who looks, whatever descriptors it closes, and whatever children it has.
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

// Attaches, lends itself a buffer, says so, and stays.
int hold(const queue& q, const baton& holds) {
  auto own = q.reattach_after_fork();
  if (!own) return 1;
  auto lent = own->acquire(deadline::now());
  if (!lent) return 2;
  holds.pass();
  pause();
  return 0;
}

// What is passed to us, or how the child ended instead; -1: it was passed.
int taken_or_ended(child& from, const queue& q) {
  int status = 0;
  pid_t ended = 0;
  while (q.inspect().loaned == 0 && (ended = waitpid(from.pid(), &status, WNOHANG)) == 0) sched_yield();
  if (ended == 0) return -1;
  from.forget();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Two processes in different time namespaces see different start times of the same process.
TEST(Life, AnotherTimeNamespaceIsNoDeath) {
  queue q = make();
  const baton holds;
  child outer([&] {
    if (unshare(CLONE_NEWTIME) != 0) return kNotPermitted;
    std::ofstream offsets("/proc/self/timens_offsets");
    offsets << "boottime 864000 0\n";
    offsets.close();
    if (!offsets) return kNotPermitted;
    // The namespace is that of the children.
    child holder([&] { return hold(q, holds); });
    return holder.wait();
  });
  if (const int ended = taken_or_ended(outer, q); ended >= 0) {
    if (ended == kNotPermitted) GTEST_SKIP() << "a time namespace: not permitted (CAP_SYS_ADMIN), or Linux before 5.6";
    FAIL() << ended;
  }
  holds.take();
  EXPECT_EQ(q.recover(), 0u);
  EXPECT_EQ(q.inspect().loaned, 1u);
  // It goes with its parent (PR_SET_PDEATHSIG), and is not ours to wait for.
  outer.kill_and_wait();
  const auto start = deadline::clock::now();
  while (q.recover() == 0 && deadline::clock::now() - start < 20s) sched_yield();
  EXPECT_EQ(test::check_survivor(q).broken, "");
}

// Runs in a new pid namespace without a /proc, as bubblewrap does.
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

// One process holds a loan as process 2 of its pid namespace. The other one's namespace has no process 2.
TEST(Life, WithoutProcNobodyIsTakenForDead) {
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
  if (const int ended = taken_or_ended(holder, q); ended >= 0) {
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

// A child by a bare clone() runs no handlers, and has all that its parent had open. It does not have its life.
TEST(Life, AChildThatKeepsEverythingDoesNotKeepItsParentsLife) {
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
    EXPECT_EQ(q.recover(), 1u);
    EXPECT_EQ(q.inspect().loaned, 0u);
    kill(raw, SIGKILL);
    for (const int fd : ends) close(fd);
    shm_unlink(q.name().c_str());
  }
}

// One thread attaches while another one forks. No child keeps the lock, at whatever step of attaching the fork comes.
TEST(Life, AForkBesideAnAttachKeepsNothing) {
  queue q = make();
  const baton done, over;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  child busy([&] {
    std::atomic<bool> stops{false};
    std::thread attaches([&] {
      while (!stops) (void)q.reattach_after_fork();
    });
    // They end with the pipe.
    for (int i = 0; i < 100; ++i) {
      if (fork() == 0) {
        over.take();
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
  // All places could be had, over and over: nobody keeps the lock of one that is free.
  std::vector<queue> all;
  for (int i = 0; i < 14; ++i) {
    auto one = queue::attach(q.fd());
    ASSERT_TRUE(one) << i << ": " << one.error().text;
    all.push_back(std::move(one).value());
  }
  all.clear();
  busy.kill_and_wait();
  EXPECT_EQ(q.recover(), 1u);
  for (int i = 0; i < 100; ++i) over.pass();
  for (const int fd : ends) close(fd);
}

// From here on, this process cannot open a pidfd.
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

// A process that has ended and that nobody has waited for.
void leave_a_zombie(const queue& q) {
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

TEST(Life, AZombieIsDeadWithoutAPidfd) { leave_a_zombie(make()); }

TEST(Life, AZombieIsDeadForOneWithoutADescriptorLeft) {
  queue q = make();
  const baton looks, ended, holds;
  child looker([&] {
    auto own = q.reattach_after_fork();
    if (!own) return 1;
    const rlimit none{3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    looks.pass();
    ended.take();
    return own->recover() == 1 && own->inspect().loaned == 0 ? 0 : 2;
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

// What it executes has not its handle: the place and what it held are the others'.
TEST(Life, ExecGivesThePlaceBack) {
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
  const auto start = deadline::clock::now();
  while (q.recover() == 0 && deadline::clock::now() - start < 20s) sched_yield();
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

TEST(Life, PeersCostNoDescriptor) {
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
  std::size_t dead = q.recover();
  EXPECT_EQ(dead, kPeers);
}

// A daemon closes what it has inherited, its queue's descriptor as well, and opens its log in that place.
TEST(Life, WhoClosesAllDescriptorsLivesAndTakesNobodyForDead) {
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

// A place is free at once when its handle is closed, by whomever it was had.
TEST(Life, PlacesComeBack) {
  queue q = make(strategy::memfd, 2);
  for (int i = 0; i < 1000; ++i) {
    auto one = queue::attach(q.fd());
    ASSERT_TRUE(one) << i << ": " << one.error().text;
  }
}

// The child of a fork has the descriptor, but is no user: the name may go with the last one.
TEST(Life, AForkThatNeverUsesAQueueKeepsNoName) {
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

// gc() has the lock of a name alone while it looks. Who attaches meanwhile waits for that instant.
TEST(Life, WhoAttachesWhileGarbageIsLookedForWaits) {
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
