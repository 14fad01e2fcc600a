// Tests pids that now belong to another process, pid namespaces, and files that must not be trusted.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "child.hpp"
#include "forksight/ipc/handover.hpp"
#include "invariants.hpp"
#include "process.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using testing::HasSubstr;

queue make() {
  options wanted;
  wanted.slots = 4;
  wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

// Attaches, acquires a loan, passes the baton `holds`, and keeps the loan until the process is killed.
int hold(const queue& q, const baton& holds) {
  auto own = q.reattach_after_fork();
  if (!own) return 1;
  auto lent = own->acquire(deadline::now());
  if (!lent) return 2;
  holds.pass();
  pause();
  return 0;
}

constexpr int kNotPermitted = 77;

// Runs `body` as the first process of a pid namespace of its own, with its own /proc or with that of its parent.
int in_namespace(bool own_proc, const std::function<int()>& body) {
  child outer([&] {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return kNotPermitted;
    child first([&] {
      if (own_proc && (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                       mount("proc", "/proc", "proc", 0, nullptr) != 0)) {
        return kNotPermitted;
      }
      return body();
    });
    return first.wait();
  });
  return outer.wait();
}

// Returns field 22 of /proc/PID/stat (proc(5)), in clock ticks since boot. Returns "" if there is no such process. The
// test's own processes have names without brackets.
std::string start_time_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string field;
  for (int number = 1; number <= 22; ++number) {
    if (!(file >> field)) return "";
  }
  return field;
}

bool set_last_pid(pid_t pid) {
  std::FILE* const file = std::fopen("/proc/sys/kernel/ns_last_pid", "w");
  if (file == nullptr) return false;
  const bool written = std::fprintf(file, "%d", pid) > 0;
  return std::fclose(file) == 0 && written;
}

// The holder of a loan has died and was reaped. The kernel has given its pid to another process. recover() must still
// find the holder dead. Returns 0, or the number of the step that failed, or kNotPermitted.
int reuse_a_pid(bool was_seen_alive) {
  queue q = make();
  const baton holds;
  auto holder = std::make_unique<child>([&] { return hold(q, holds); });
  holds.take();
  if (was_seen_alive && q.recover() != 0) return 1;
  const pid_t pid = holder->pid();
  const std::string start = start_time_of(pid);
  if (start.empty()) return 4;
  holder->kill_and_wait();
  // The kernel measures start times coarsely. So the loop ends only when the new process has another start time than
  // the holder had.
  std::unique_ptr<child> other;
  for (;;) {
    if (!set_last_pid(pid - 1)) return kNotPermitted;
    other = std::make_unique<child>([] {
      pause();
      return 0;
    });
    if (other->pid() != pid) return 2;
    if (start_time_of(pid) != start) break;
    other.reset();
  }
  if (test::recover_dead(q) != 1) return 3;
  return test::check_survivor(q).broken.empty() ? 0 : 5;
}

void expect_passed(int outcome) {
  if (outcome == kNotPermitted) GTEST_SKIP() << "a pid namespace of its own: not permitted (CAP_SYS_ADMIN)";
  EXPECT_EQ(outcome, 0);
}

TEST(Strangers, AMemberIsDeadIfItsPidBelongsToAnotherProcess) {
  expect_passed(in_namespace(true, [] { return reuse_a_pid(false); }));
}

TEST(Strangers, AMemberThatWasSeenAliveIsDeadIfItsPidBelongsToAnotherProcess) {
  expect_passed(in_namespace(true, [] { return reuse_a_pid(true); }));
}

// In the test's pid namespace, the pid of a member from another pid namespace belongs to no process, or to another
// process. While that member lives, it must keep its loan. When it has died, the loan must become free.
TEST(Strangers, AMemberOfAnotherPidNamespaceIsDeadOnlyWhenItHasDied) {
  for (const bool own_proc : {true, false}) {
    queue q = make();
    const baton holds, over;
    child outer([&] {
      return in_namespace(own_proc, [&] {
        auto own = q.reattach_after_fork();
        if (!own) return 1;
        // This process sees the creator of the queue in another pid namespace. The creator must not be taken for dead.
        if (own->recover() != 0) return 2;
        auto lent = own->acquire(deadline::now());
        if (!lent) return 3;
        holds.pass();
        over.take();
        const bool sent = own->send(std::move(*lent), 1).has_value();
        if (!sent) return 4;
        auto next = own->acquire(deadline::now());
        // The process ends while it has this loan.
        _exit(next ? 0 : 5);
      });
    });
    // If a pid namespace is not permitted, the child ends without a loan.
    int status = 0;
    pid_t ended = 0;
    while (q.inspect().loaned == 0 && (ended = waitpid(outer.pid(), &status, WNOHANG)) == 0) sched_yield();
    if (ended != 0) {
      outer.forget();
      expect_passed(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
      return;
    }
    holds.take();
    EXPECT_EQ(q.recover(), 0u);
    std::vector<loan> mine;
    for (int i = 0; i < 3; ++i) mine.push_back(std::move(q.acquire(deadline::now())).value());
    const auto refused = q.acquire(deadline::after(150ms));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::timeout);
    EXPECT_THAT(refused.error().text, HasSubstr(" of another pid namespace (alive"));
    mine.clear();
    over.pass();
    EXPECT_EQ(outer.wait(), 0);
    EXPECT_TRUE(q.receive(deadline::after(5s)));
    EXPECT_EQ(test::recover_dead(q), 1u);
    EXPECT_EQ(q.inspect().loaned, 0u);
  }
}

// The process sees the /proc of another pid namespace. There its own pid belongs to another process or to none. So it
// must not use the state that this /proc shows.
TEST(Strangers, AProcOfAnotherPidNamespaceIsNotUsed) {
  expect_passed(
      in_namespace(false, [] { return detail::state_of(static_cast<std::uint32_t>(getpid())) == 0 ? 0 : 1; }));
}

int copy_of(const queue& q, int seals, off_t bytes) {
  const int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(fchmod(fd, 0600), 0);
  struct stat about {};
  EXPECT_EQ(fstat(q.fd(), &about), 0);
  void* const from = mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_SHARED, q.fd(), 0);
  EXPECT_EQ(write(fd, from, static_cast<std::size_t>(about.st_size)), about.st_size);
  munmap(from, static_cast<std::size_t>(about.st_size));
  if (bytes >= 0) {
    EXPECT_EQ(ftruncate(fd, bytes), 0);
  }
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(Strangers, AFileThatLacksSealsOrBytesIsRefused) {
  queue q = make();
  const detail::descriptor good(copy_of(q, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, -1));
  EXPECT_TRUE(queue::attach(good.get()));
  const detail::descriptor open(copy_of(q, F_SEAL_GROW, -1));
  EXPECT_EQ(queue::attach(open.get()).error().code, errc::untrusted);
  for (const off_t bytes : {0, 1, 4095, 4096, 8192}) {
    const detail::descriptor cut(copy_of(q, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, bytes));
    EXPECT_EQ(queue::attach(cut.get()).error().code, errc::corrupt) << bytes;
  }
}

TEST(Strangers, AnotherModeOrAnotherUserIsRefused) {
  queue q = make();
  ASSERT_EQ(fchmod(q.fd(), 0640), 0);
  EXPECT_EQ(queue::attach(q.fd()).error().code, errc::untrusted);
  ASSERT_EQ(fchmod(q.fd(), 0600), 0);
  if (geteuid() != 0) GTEST_SKIP() << "a file of another user: only the superuser can make one";
  ASSERT_EQ(fchown(q.fd(), 12345, 12345), 0);
  const auto refused = queue::attach(q.fd());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::untrusted);
  EXPECT_THAT(refused.error().text, HasSubstr("belongs to user 12345"));
}

// Gives up root's rights for good, as a server that root has started may do.
bool become_another_user() { return setresgid(12345, 12345, 12345) == 0 && setresuid(12345, 12345, 12345) == 0; }

// Root makes a queue and forks processes, which give up root's rights before they attach. They can use the queue, and
// the others notice if they die.
TEST(Strangers, AProcessThatGaveUpRootsRightsUsesRootsQueue) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give up root's rights";
  for (const bool readonly_payload : {false, true}) {
    options wanted;
    wanted.slots = wanted.buffers = 4;
    wanted.buffer_bytes = 64;
    wanted.readonly_payload = readonly_payload;
    auto q = queue::create(wanted);
    ASSERT_TRUE(q) << q.error().text;
    ASSERT_TRUE(q->send_copy("x", 1));
    const baton holds;
    child worker([&] {
      if (!become_another_user()) return 1;
      auto own = q->reattach_after_fork();
      if (!own) {
        std::fprintf(stderr, "%s\n", own.error().text.c_str());
        holds.pass();
        return 2;
      }
      auto got = own->receive(deadline::now());
      holds.pass();
      pause();
      return got ? 0 : 3;
    });
    holds.take();
    EXPECT_EQ(q->recover(), 0u);
    EXPECT_EQ(q->inspect().held, 1u);
    for (const auto& who : q->inspect().participants) EXPECT_EQ(who.lives, snapshot::life::alive);
    worker.kill_and_wait();
    EXPECT_EQ(test::recover_dead(*q), 1u);
    EXPECT_EQ(q->inspect().held, 0u);
  }
}

// Root has made the socket pair, too.
TEST(Strangers, AProcessThatGaveUpRootsRightsReceivesRootsQueue) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give up root's rights";
  queue q = make();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  ASSERT_TRUE(send_queue(sockets[0], q));
  child worker([&] {
    if (!become_another_user()) return 1;
    auto own = receive_queue(sockets[1], role::any, deadline::after(20s));
    if (!own) {
      std::fprintf(stderr, "%s\n", own.error().text.c_str());
      return 2;
    }
    return own->send_copy("x", 1) ? 0 : 3;
  });
  EXPECT_EQ(worker.wait(), 0);
  EXPECT_TRUE(q.receive(deadline::now()));
  for (const int fd : sockets) close(fd);
}

// The file of a named queue has the mode 600. So a process must attach before it gives up root's rights.
TEST(Strangers, RootsNamedQueueIsForRootAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give up root's rights";
  options wanted;
  wanted.slots = wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.backing = strategy::named;
  auto q = queue::create(wanted);
  ASSERT_TRUE(q) << q.error().text;
  const std::string expected =
      "segment: belongs to user 0, but this process to user 12345: only processes of one user can share a queue. "
      "Attach before you give up root's rights, or use strategy::memfd";
  child late([&] {
    if (!become_another_user()) return 1;
    const auto own = q->reattach_after_fork();
    if (own) return 2;
    return own.error().code == errc::untrusted && own.error().text == expected ? 0 : 3;
  });
  EXPECT_EQ(late.wait(), 0);
  child early([&] {
    auto own = q->reattach_after_fork();
    return own && become_another_user() && own->send_copy("x", 1) ? 0 : 1;
  });
  EXPECT_EQ(early.wait(), 0);
  EXPECT_TRUE(q->receive(deadline::now()));
  shm_unlink(q->name().c_str());
}

}  // namespace
}  // namespace forksight::ipc
