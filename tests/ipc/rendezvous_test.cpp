// Tests open_or_create(): processes that know only a name must all attach to the same queue. Each test has a /dev/shm
// of its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "forksight/ipc/handover.hpp"
#include "invariants.hpp"
#include "sandbox.hpp"
#include "stepping.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;

constexpr const char* kName = "jobs";
constexpr const char* kFullName = "/forksight-jobs";
constexpr const char* kPath = "/dev/shm/forksight-jobs";

options small() {
  options wanted;
  wanted.slots = wanted.buffers = 16;
  wanted.buffer_bytes = 64;
  wanted.spin_us = 0;
  return wanted;
}

result<queue> meet(options wanted = small(), role as = role::any) {
  wanted.as = as;
  return queue::open_or_create(kName, wanted);
}

std::vector<std::string> names() { return test::names_in("/dev/shm"); }
const std::vector<std::string> kOnlyName = {"forksight-jobs"};

template <class T>
void expect_error(const result<T>& got, errc code, const std::string& text) {
  ASSERT_FALSE(got.has_value()) << "instead of: " << text;
  EXPECT_STREQ(name_of(got.error().code), name_of(code));
  EXPECT_EQ(got.error().text, text);
}

class Rendezvous : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::enter_mount_namespace()) GTEST_FAIL();
    ASSERT_TRUE(test::mount_memory("/dev/shm", "size=16m"));
  }
};

TEST_F(Rendezvous, TheFirstCreatesAndTheOthersAttach) {
  auto one = meet();
  ASSERT_TRUE(one) << one.error().text;
  EXPECT_EQ(one->name(), kFullName);
  EXPECT_EQ(names(), kOnlyName);
  struct stat about {};
  ASSERT_EQ(stat(kPath, &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600u);
  auto other = meet(small(), role::consumer);
  ASSERT_TRUE(other) << other.error().text;
  EXPECT_EQ(other->name(), kFullName);
  EXPECT_EQ(other->inspect().id, one->inspect().id);
  ASSERT_TRUE(test::send_number(*one, 7));
  EXPECT_TRUE(other->receive(deadline::now()));
  EXPECT_EQ(other->acquire(deadline::now()).error().code, errc::role);
  // attach() and inspect() also find this queue, and know its name.
  auto by_name = queue::attach(kFullName);
  ASSERT_TRUE(by_name) << by_name.error().text;
  auto by_number = queue::attach(one->fd());
  ASSERT_TRUE(by_number);
  EXPECT_EQ(by_number->name(), kFullName);
  auto seen = inspect(kFullName);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->name, kFullName);
  EXPECT_EQ(seen->participants.size(), 4u);
  EXPECT_EQ(inspect(one->fd())->name, kFullName);
}

// Each of the eight processes runs this function. It sends its number, waits until all may receive, and receives one
// number.
int send_and_receive(const baton& go, const baton& has_sent, const baton& may_receive, std::uint32_t number) {
  alarm(50);
  go.take();
  auto own = meet();
  if (!own) return 1;
  if (!test::send_number(*own, number)) return 2;
  has_sent.pass();
  may_receive.take();
  return own->receive(deadline::after(20s)) ? 0 : 3;
}

TEST_F(Rendezvous, EightProcessesAtOnceAttachToOneQueue) {
  for (int round = 0; round < 200; ++round) {
    const baton go, has_sent, may_receive;
    std::vector<child> all;
    for (std::uint32_t i = 0; i < 8; ++i)
      all.emplace_back([&, i] { return send_and_receive(go, has_sent, may_receive, i); });
    for (int i = 0; i < 8; ++i) go.pass();
    // If a process fails, it does not pass `has_sent`, and take() waits until the test's timeout. The alarms end the
    // other processes.
    for (int i = 0; i < 8; ++i) has_sent.take();
    ASSERT_EQ(names(), kOnlyName);
    {
      auto seen = inspect(kFullName);
      ASSERT_TRUE(seen);
      ASSERT_EQ(seen->participants.size(), 8u);
      ASSERT_EQ(seen->queued, 8u);
    }
    for (int i = 0; i < 8; ++i) may_receive.pass();
    for (child& one : all) ASSERT_EQ(one.wait(), 0) << round;
    ASSERT_EQ(unlink(kPath), 0);
  }
}

// Runs `operation` in a child up to its system-call stop number `at`, and kills the child there. Returns false if the
// operation ended before that stop. Each system call has two stops, one before and one after it. Other processes see
// only complete queues and the names, and only system calls change the names. So killing at every stop has the same
// effects as killing at every instruction.
bool kill_at_stop(const std::function<void()>& operation, unsigned long at) {
  child victim([&] {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 99;
    test::stop_here();
    operation();
    test::stop_here();
    return 0;
  });
  int status = 0;
  EXPECT_EQ(waitpid(victim.pid(), &status, 0), victim.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  ptrace(PTRACE_SETOPTIONS, victim.pid(), nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  for (unsigned long stop = 0;; ++stop) {
    if (stop == at) break;
    if (ptrace(PTRACE_SYSCALL, victim.pid(), nullptr, nullptr) != 0) break;
    EXPECT_EQ(waitpid(victim.pid(), &status, 0), victim.pid());
    if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGSTOP) {
      EXPECT_TRUE(WIFSTOPPED(status)) << "the child ended with wait status " << status;
      return false;
    }
  }
  return victim.kill_and_wait() == 128 + SIGKILL;
}

// Runs `operation` in a child. Counts the child's calls of the system call `number` whose second argument is `second`
// (-1: any). Stops the child before call number `times`, runs `between`, and lets the child go on. Returns the child's
// exit status.
int interrupt(const std::function<int()>& operation, long number, long second, int times,
              const std::function<void()>& between) {
  child subject([&] {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 99;
    test::stop_here();
    return operation();
  });
  int status = 0;
  EXPECT_EQ(waitpid(subject.pid(), &status, 0), subject.pid());
  ptrace(PTRACE_SETOPTIONS, subject.pid(), nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  for (bool is_entry = true; times != 0; is_entry = !is_entry) {
    ptrace(PTRACE_SYSCALL, subject.pid(), nullptr, nullptr);
    if (waitpid(subject.pid(), &status, 0) != subject.pid() || !WIFSTOPPED(status)) {
      ADD_FAILURE() << "the child ended before the call, with wait status " << status;
      subject.forget();
      return 98;
    }
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, subject.pid(), nullptr, &registers);
    if (!is_entry || static_cast<long>(registers.orig_rax) != number) continue;
    if (second < 0 || static_cast<long>(registers.rsi) == second) --times;
  }
  between();
  ptrace(PTRACE_DETACH, subject.pid(), nullptr, nullptr);
  return subject.wait();
}

// The name must be free, or belong to a queue that works. Two handles must attach to one queue. gc() must remove all
// other files.
void expect_that_others_can_meet(unsigned long stop) {
  for (const std::string& name : names()) {
    if (name != kOnlyName[0]) {
      ASSERT_TRUE(test::wait_until_unused("/" + name)) << stop;
      continue;
    }
    auto seen = inspect(kFullName);
    ASSERT_TRUE(seen) << stop << ": " << seen.error().text;
  }
  auto one = meet();
  ASSERT_TRUE(one) << stop << ": " << one.error().text;
  auto other = meet();
  ASSERT_TRUE(other) << stop << ": " << other.error().text;
  ASSERT_EQ(one->inspect().id, other->inspect().id);
  ASSERT_TRUE(test::send_number(*one, 1));
  ASSERT_TRUE(other->receive(deadline::now()));
  auto cleaned = gc();
  ASSERT_TRUE(cleaned);
  ASSERT_EQ(cleaned->in_use, std::vector<std::string>{kFullName}) << stop;
  ASSERT_TRUE(cleaned->skipped.empty()) << stop << ": " << cleaned->skipped[0];
  ASSERT_EQ(names(), kOnlyName) << stop;
}

TEST_F(Rendezvous, ACreatorThatIsKilledBlocksNobody) {
  bool was_published = false, was_not = false;
  unsigned long stop = 0;
  for (bool goes_on = true; goes_on; ++stop) {
    ASSERT_LT(stop, 2000u);
    goes_on = kill_at_stop([] { (void)meet(); }, stop);
    const bool is_there = access(kPath, F_OK) == 0;
    (is_there ? was_published : was_not) = true;
    expect_that_others_can_meet(stop);
    if (HasFatalFailure()) return;
    ASSERT_EQ(unlink(kPath), 0);
  }
  EXPECT_GT(stop, 40u);
  EXPECT_TRUE(was_published);
  EXPECT_TRUE(was_not);
}

TEST_F(Rendezvous, AProcessThatIsKilledWhileItAttachesHarmsNothing) {
  auto first = meet();
  ASSERT_TRUE(first);
  unsigned long stop = 0;
  for (bool goes_on = true; goes_on; ++stop) {
    ASSERT_LT(stop, 2000u);
    goes_on = kill_at_stop([] { (void)meet(); }, stop);
    const test::leftovers left = test::check_survivor(*first);
    ASSERT_EQ(left.broken, "") << stop;
    ASSERT_EQ(names(), kOnlyName) << stop;
  }
  EXPECT_GT(stop, 20u);
}

// Processes open the queue, send, receive and close it, again and again, while other processes call gc() in a loop. No
// process may get an error, and gc() must not remove a queue that a process has open.
TEST_F(Rendezvous, GcInALoopRemovesNothingThatIsUsed) {
  std::vector<child> collectors;
  for (const bool dry_run : {false, false, true}) {
    collectors.emplace_back([dry_run] {
      alarm(55);
      for (;;) {
        if (!gc(dry_run)) return 1;
      }
    });
  }
  std::vector<child> users;
  for (int i = 0; i < 4; ++i) {
    users.emplace_back([] {
      alarm(50);
      for (int round = 0; round < 150; ++round) {
        auto own = meet();
        if (!own) {
          std::fprintf(stderr, "round %d: %s\n", round, own.error().text.c_str());
          return 1;
        }
        struct stat mine {
        }, named{};
        if (fstat(own->fd(), &mine) != 0 || stat(kPath, &named) != 0 || mine.st_ino != named.st_ino) return 2;
        // A receiver that the kernel interrupts keeps its slot for a while, so this waits.
        if (!test::send_number(*own, 1, deadline::after(10s))) return 3;
        if (!own->receive(deadline::after(10s))) return 4;
      }
      return 0;
    });
  }
  for (child& one : users) EXPECT_EQ(one.wait(), 0);
  for (child& one : collectors) EXPECT_EQ(one.kill_and_wait(), 128 + SIGKILL);
  ASSERT_TRUE(gc());
  EXPECT_TRUE(names().empty());
}

TEST_F(Rendezvous, ADeadQueueIsFoundWithItsMessages) {
  child first([] {
    auto own = meet();
    return own && test::send_number(*own, 41) ? (raise(SIGKILL), 0) : 1;
  });
  const auto pid = static_cast<std::uint32_t>(first.pid());
  ASSERT_EQ(first.wait(), 128 + SIGKILL);
  {
    auto next = meet();
    ASSERT_TRUE(next);
    auto got = next->receive(deadline::now());
    ASSERT_TRUE(got) << got.error().text;
    EXPECT_EQ(got->producer(), pid);
  }
  ASSERT_TRUE(test::wait_until_unused(kFullName));
  auto report = gc(true);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->removed, std::vector<std::string>{kFullName});
  EXPECT_EQ(names(), kOnlyName);
  EXPECT_TRUE(gc());
  EXPECT_TRUE(names().empty());
}

TEST_F(Rendezvous, AWatcherRemovesTheNameWhenTheLastUserEnds) {
  auto own = std::make_unique<result<queue>>(meet());
  ASSERT_TRUE(*own);
  child watcher([] {
    alarm(50);
    auto removed = remove_when_unused(kFullName);
    return removed && *removed ? 0 : 1;
  });
  own.reset();
  EXPECT_EQ(watcher.wait(), 0);
  EXPECT_TRUE(names().empty());
}

TEST_F(Rendezvous, TheNameIsFreeAgainAfterUnlinkAt) {
  options wanted = small();
  wanted.unlink_at = 2;
  auto one = meet(wanted);
  ASSERT_TRUE(one);
  EXPECT_EQ(names(), kOnlyName);
  auto two = meet(wanted);
  ASSERT_TRUE(two);
  EXPECT_TRUE(names().empty());
  auto three = meet(wanted);
  ASSERT_TRUE(three);
  EXPECT_EQ(one->inspect().id, two->inspect().id);
  EXPECT_NE(one->inspect().id, three->inspect().id);
  // A late member of the first queue does not remove the name of the other queue.
  EXPECT_EQ(one->name(), kFullName);
  auto late = queue::attach(one->fd());
  ASSERT_TRUE(late);
  EXPECT_EQ(names(), kOnlyName);
  EXPECT_EQ(inspect(kFullName)->id, three->inspect().id);
  wanted.unlink_at = 1;
  expect_error(meet(wanted), errc::bad_option,
               "unlink_at is 1: nobody else would find the queue by its name: it can be 0, or 2 to 16");
}

// A process that removes the name holds a lock. A second process that wants to remove the name waits for that lock.
// While the second process waits, the name is given to another file. The second process must not remove this name.
TEST_F(Rendezvous, OnlyOneProcessAtATimeRemovesTheName) {
  options wanted = small();
  wanted.unlink_at = 2;
  auto one = meet(wanted);
  ASSERT_TRUE(one);
  const detail::descriptor file(open(kPath, O_RDWR | O_CLOEXEC));
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = (std::int64_t{1} << 50) + detail::kMaxParticipants + 1;
  byte.l_len = 1;
  ASSERT_EQ(fcntl(file.get(), F_OFD_SETLK, &byte), 0);
  child second([&] { return meet(wanted) ? 0 : 1; });
  while (one->inspect().participants.size() < 2) sched_yield();
  EXPECT_EQ(names(), kOnlyName);
  ASSERT_EQ(unlink(kPath), 0);
  test::write_file(kPath, "of somebody else");
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(names(), kOnlyName);
}

// Before a process takes the lock to remove the name, the name is given to another queue. The process must not remove
// the name.
TEST_F(Rendezvous, TheNameOfAnotherQueueIsNotRemoved) {
  options wanted = small();
  wanted.unlink_at = 2;
  auto one = meet(wanted);
  ASSERT_TRUE(one);
  result<queue> other = error{};
  // The child first takes the lock of its entry, and then the lock for removing the name.
  const int ended = interrupt([&] { return meet(wanted) ? 0 : 1; }, SYS_fcntl, F_OFD_SETLK, 2,
                              [&] {
                                ASSERT_EQ(names(), kOnlyName);
                                ASSERT_EQ(unlink(kPath), 0);
                                other = meet(wanted);
                                ASSERT_TRUE(other);
                              });
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(names(), kOnlyName);
}

// gc() has opened a dead queue. Before this gc() takes the lock, another gc() removes that queue, and another queue
// gets the name.
TEST_F(Rendezvous, ASlowGcDoesNotRemoveTheNextQueue) {
  ASSERT_TRUE(meet());
  result<queue> next = error{};
  const int ended = interrupt([] { return gc()->removed.empty() ? 0 : 1; }, SYS_flock, -1, 1,
                              [&] {
                                ASSERT_TRUE(gc());
                                ASSERT_TRUE(names().empty());
                                next = meet();
                                ASSERT_TRUE(next);
                              });
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(names(), kOnlyName);
}

// open_or_create() has opened a dead queue. Before open_or_create() takes the lock, gc() removes that queue, and
// another process creates the next one.
TEST_F(Rendezvous, ASlowProcessAttachesToTheNextQueue) {
  ASSERT_TRUE(meet());
  result<queue> next = error{};
  const auto attach_and_send = [] {
    auto own = meet();
    return own && test::send_number(*own, 1) ? 0 : 1;
  };
  const int ended = interrupt(attach_and_send, SYS_flock, -1, 1, [&] {
    ASSERT_EQ(gc()->removed.size(), 1u);
    next = meet();
    ASSERT_TRUE(next);
  });
  EXPECT_EQ(ended, 0);
  EXPECT_TRUE(next->receive(deadline::now()));
}

TEST_F(Rendezvous, InvalidNamesAreRefused) {
  const auto expect_refused = [](const std::string& name, const std::string& shown) {
    expect_error(queue::open_or_create(name, small()), errc::bad_option,
                 "name is \"" + shown +
                     "\": it can have 1 to 64 letters, digits, '.', '_' and '-', not begin with '.', and not be 32 hex "
                     "digits");
  };
  for (const char* const name : {"", ".jobs", "..", "a/b", "/jobs", "a b", "0123456789abcdef0123456789abcdef",
                                 "0123456789ABCDEF0123456789abcdef"}) {
    expect_refused(name, name);
  }
  expect_refused("j\303\266bs", "j??bs");
  expect_refused(std::string("a\0b", 3), "a?b");
  expect_refused(std::string(65, 'a'), std::string(65, 'a'));
  expect_refused(std::string(66, 'a'), std::string(65, 'a') + "...");
  EXPECT_TRUE(names().empty());
  for (const std::string& name : {std::string("-"), std::string("a.b_c-D9"), std::string(64, 'a'), std::string(31, '0'),
                                  std::string(33, '0'), std::string("0123456789abcdef0123456789abcdeg")}) {
    auto made = queue::open_or_create(name, small());
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_EQ(made->name(), "/forksight-" + name);
  }
  EXPECT_TRUE(gc());
  EXPECT_TRUE(names().empty());
}

TEST_F(Rendezvous, OtherOptionsThanThoseOfTheQueueAreRefused) {
  auto first = meet();
  ASSERT_TRUE(first);
  const auto expect_differs = [](const options& wanted, const std::string& what) {
    expect_error(meet(wanted), errc::bad_option,
                 "/forksight-jobs: the queue has " + what +
                     ": ask for the options of the queue that exists, or choose another name");
  };
  options wanted = small();
  wanted.spin_us = 20;
  wanted.slots = 15;  // the queue rounds this up to 16
  wanted.buffer_bytes = 1;
  wanted.backing = strategy::memfd;
  EXPECT_TRUE(meet(wanted));
  (wanted = small()).slots = 32, wanted.buffers = 8;
  expect_differs(wanted, "slots 16, but this call asks for 32");
  (wanted = small()).buffers = 8;
  expect_differs(wanted, "buffers 16, but this call asks for 8");
  (wanted = small()).buffer_bytes = 65;
  expect_differs(wanted, "buffer_bytes 64, but this call asks for 128");
  (wanted = small()).feeding = feed::thread;
  expect_differs(wanted, "feeding direct, but this call asks for thread");
  (wanted = small()).after_death = on_death::redeliver;
  expect_differs(wanted, "after_death drop, but this call asks for redeliver");
  (wanted = small()).when_full = full::drop_oldest;
  expect_differs(wanted, "when_full block, but this call asks for drop_oldest");
  (wanted = small()).max_redeliver = 9;
  expect_differs(wanted, "max_redeliver 3, but this call asks for 9");
  (wanted = small()).max_participants = 20;
  expect_differs(wanted, "max_participants 16, but this call asks for 20");
  (wanted = small()).unlink_at = 4;
  expect_differs(wanted, "unlink_at 0, but this call asks for 4");
  (wanted = small()).atfork_handlers = true;
  expect_differs(wanted, "atfork_handlers false, but this call asks for true");
  (wanted = small()).holds_references = true;
  expect_differs(wanted, "holds_references false, but this call asks for true");
  (wanted = small()).readonly_payload = true;
  expect_error(meet(wanted), errc::bad_option,
               "readonly_payload is set, but a named file cannot be sealed: set backing to strategy::memfd");
  EXPECT_EQ(names(), kOnlyName);
  EXPECT_EQ(first->inspect().participants.size(), 1u);
}

TEST_F(Rendezvous, AFileThatIsNoQueueIsRefusedAndLeftAlone) {
  const std::string refused = "/forksight-jobs: is a file, but not a queue: remove it, or choose another name";
  for (const std::size_t bytes : {0u, 10u, 4096u, 100000u}) {
    test::write_file(kPath, std::string(bytes, 'x'));
    ASSERT_EQ(chmod(kPath, 0600), 0);
    expect_error(meet(), errc::untrusted, refused);
    auto report = gc();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->skipped, std::vector<std::string>{"/forksight-jobs: is not a queue"});
    expect_error(remove_when_unused(kFullName), errc::untrusted, "/forksight-jobs: is not a queue");
    struct stat about {};
    ASSERT_EQ(stat(kPath, &about), 0);
    EXPECT_EQ(static_cast<std::size_t>(about.st_size), bytes);
  }
  ASSERT_EQ(unlink(kPath), 0);
  ASSERT_EQ(mkfifo(kPath, 0600), 0);
  // open() of a FIFO ends the wait of another process for the other end. So the FIFO must not be opened.
  const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(events, kPath, IN_OPEN), 0);
  expect_error(meet(), errc::untrusted, refused);
  EXPECT_FALSE(inspect(kFullName));
  EXPECT_EQ(gc()->skipped, std::vector<std::string>{"/forksight-jobs: is not a queue"});
  expect_error(remove_when_unused(kFullName), errc::untrusted, "/forksight-jobs: is not a queue");
  alignas(inotify_event) char event[sizeof(inotify_event) + NAME_MAX + 1];
  EXPECT_EQ(::read(events, event, sizeof event), -1) << "the FIFO was opened";
  ::close(events);
  ASSERT_EQ(unlink(kPath), 0);
  ASSERT_EQ(mkdir(kPath, 0700), 0);
  expect_error(meet(), errc::untrusted, "/forksight-jobs: is a folder");
  ASSERT_EQ(rmdir(kPath), 0);
  auto elsewhere = queue::open_or_create("elsewhere", small());
  ASSERT_TRUE(elsewhere);
  ASSERT_EQ(symlink("/dev/shm/forksight-elsewhere", kPath), 0);
  expect_error(meet(), errc::untrusted, "/forksight-jobs: is a symbolic link");
  EXPECT_TRUE(gc()->removed.empty());
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(Rendezvous, AQueueThatCannotBeTrusted) {
  auto first = meet();
  ASSERT_TRUE(first);
  ASSERT_EQ(fchmod(first->fd(), 0640), 0);
  expect_error(meet(), errc::untrusted,
               "/forksight-jobs: its mode is 640, so other users may open it: the mode must be 600");
  ASSERT_EQ(fchmod(first->fd(), 0600), 0);
  if (geteuid() != 0) GTEST_SKIP() << "a file of another user: only the superuser can make one";
  ASSERT_EQ(fchown(first->fd(), 12345, 12345), 0);
  expect_error(meet(), errc::untrusted,
               "/forksight-jobs: belongs to user 12345, but this process to user 0: only processes of one user can "
               "share a queue");
  EXPECT_EQ(gc()->skipped, std::vector<std::string>{"/forksight-jobs: belongs to another user"});
  EXPECT_EQ(names(), kOnlyName);
}

TEST_F(Rendezvous, WithoutRoomTheCallFailsAndLeavesNoName) {
  options wanted = small();
  wanted.buffer_bytes = 2 << 20;
  auto refused = meet(wanted);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_space);
  EXPECT_TRUE(names().empty());
}

// The file system has room for only one queue. Processes that create the queue at the same time each need this room for
// a moment. All of them must still attach to one queue.
TEST_F(Rendezvous, RoomForOneQueueSuffices) {
  options wanted = small();
  wanted.buffer_bytes = 600 << 10;  // 9.4 MiB in all; the file system has 16 MiB
  for (int round = 0; round < 20; ++round) {
    const baton go, may_end;
    std::vector<child> all;
    for (int i = 0; i < 4; ++i) {
      all.emplace_back([&] {
        alarm(50);
        go.take();
        auto own = meet(wanted);
        if (!own) std::fprintf(stderr, "%s\n", own.error().text.c_str());
        return own ? 0 : 1;
      });
    }
    for (int i = 0; i < 4; ++i) go.pass();
    for (child& one : all) ASSERT_EQ(one.wait(), 0) << round;
    ASSERT_EQ(names(), kOnlyName);
    ASSERT_EQ(unlink(kPath), 0);
  }
}

TEST_F(Rendezvous, TakeRoleNeedsNoMessage) {
  auto one = meet();
  ASSERT_TRUE(one);
  ASSERT_TRUE(test::send_number(*one, 1));
  auto other = meet();
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->take_role(role::consumer));
  EXPECT_TRUE(other->inspect().participants[1].is_consumer);
  EXPECT_FALSE(other->inspect().participants[1].is_producer);
  EXPECT_EQ(other->inspect().queued, 1u);
  expect_error(other->take_role(role::any), errc::bad_option,
               "queue: take_role() got 0: it takes role::producer or role::consumer");
  auto sender = meet(small(), role::producer);
  ASSERT_TRUE(sender);
  expect_error(sender->take_role(role::consumer), errc::role,
               "queue: this handle has the role producer, so it cannot receive: attach another handle as a consumer");
}

}  // namespace
}  // namespace forksight::ipc
