// These tests let each system call of each operation fail once, with each of several errors. The operation must then
// return an error, or succeed without that call. It must release everything that it had acquired, and the queue must
// stay intact. If a signal interrupts a call, the operation must make the call again.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "forksight/ipc/handover.hpp"
#include "injector.hpp"
#include "invariants.hpp"
#include "sandbox.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;

// The deadline of calls that do not have to wait. Under a tracer on a busy machine, even such a call may take long.
constexpr auto kGenerous = 60s;
using test::fault;
using test::faulted;
using test::holdings;
using test::injector;

options small(strategy st = strategy::memfd) {
  options wanted;
  wanted.slots = wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.max_participants = 4;
  wanted.spin_us = 0;
  wanted.backing = st;
  return wanted;
}

// What an operation works on, and its results.
struct scene {
  queue q;  // the handle of the process that runs the test
  std::string name;
  int sockets[2] = {-1, -1};
  queue own;   // the handle of the child in which the fault is injected
  queue made;  // the handle that the operation makes
  std::optional<error> why;
  bool takes_over_name = false;

  scene() = default;
  scene(const scene&) = delete;
  scene& operator=(const scene&) = delete;
  ~scene() {
    for (const int fd : sockets) {
      if (fd >= 0) close(fd);
    }
    if (!name.empty()) unlink(("/dev/shm" + name).c_str());
  }
};

struct operation {
  const char* name;
  std::function<void(scene&)> prepare;  // runs in the test
  std::function<void(scene&)> join;     // runs in the child, before the fault is injected
  std::function<void(scene&)> operate;
  // Whether and how the operation starts a thread. If the operation starts a thread, the test does not compare
  // mappings, because libc keeps the stack of an ended thread.
  enum class thread { none, watches, feeds } starts = thread::none;
};

template <class T>
void keep(scene& of, result<T> got, T& where) {
  if (got) {
    where = std::move(*got);
  } else {
    of.why = got.error();
  }
}
void keep(scene& of, const result<void>& got) {
  if (!got) of.why = got.error();
}

void make(scene& of, const options& wanted) {
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  of.q = std::move(made).value();
  of.name = of.q.name();
}
result<void> send_one(queue& to) {
  const std::uint32_t number = 1;
  return to.send_copy(&number, sizeof number, deadline::after(kGenerous));
}
void make_memfd(scene& of) { make(of, small()); }
void make_named(scene& of) { make(of, small(strategy::named)); }
void make_sockets(scene& of) {
  make_memfd(of);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, of.sockets) != 0) std::abort();
}
void join(scene& of) { of.own = std::move(of.q.reattach_after_fork()).value(); }
void nothing(scene& /*of*/) {}
void make_chosen(scene& of) {
  auto made = queue::open_or_create("fault", small());
  if (!made) ADD_FAILURE() << made.error().text;
  of.q = std::move(made).value();
  of.name = of.q.name();
}
// The descriptor must become readable, although one of the calls that made it has failed.
void await_event(scene& of, const result<int>& event) {
  if (!event) {
    of.why = event.error();
    return;
  }
  pollfd ask{*event, POLLIN, 0};
  int ready = -1;
  for (int tries = 0; tries < 2 && ready < 0; ++tries) ready = poll(&ask, 1, static_cast<int>(kGenerous / 1ms));
  if (ready != 1) of.why = error{errc::system, 0, 0, "the descriptor does not become readable"};
}

const std::vector<operation> kOperations = {
    {"create", nothing, nothing, [](scene& of) { keep(of, queue::create(small()), of.made); }},
    {"create by name", nothing, nothing, [](scene& of) { keep(of, queue::create(small(strategy::named)), of.made); }},
    {"open or create, no queue exists", nothing, nothing,
     [](scene& of) { keep(of, queue::open_or_create("fault", small()), of.made); }},
    {"open or create, the queue exists", make_chosen, nothing,
     [](scene& of) { keep(of, queue::open_or_create("fault", small()), of.made); }},
    {"create with a payload of its own", nothing, nothing,
     [](scene& of) {
       options wanted = small();
       wanted.readonly_payload = true;
       keep(of, queue::create(wanted), of.made);
     }},
    {"attach", make_memfd, nothing, [](scene& of) { keep(of, queue::attach(of.q.fd()), of.made); }},
    {"attach by name", make_named, nothing, [](scene& of) { keep(of, queue::attach(of.name), of.made); }},
    {"attach to a chosen name", make_chosen, nothing, [](scene& of) { keep(of, queue::attach(of.q.fd()), of.made); }},
    {"attach by a chosen name", make_chosen, nothing, [](scene& of) { keep(of, queue::attach(of.name), of.made); }},
    {"reattach", make_memfd, nothing, [](scene& of) { keep(of, of.q.reattach_after_fork(), of.made); }},
    {"send a queue", make_sockets, nothing,
     [](scene& of) { keep(of, send_queue(of.sockets[0], of.q, deadline::after(kGenerous))); }},
    {"receive a queue",
     [](scene& of) {
       make_sockets(of);
       ASSERT_TRUE(send_queue(of.sockets[0], of.q));
     },
     nothing,
     [](scene& of) { keep(of, receive_queue(of.sockets[1], role::any, deadline::after(kGenerous)), of.made); }},
    {"send in vain",
     [](scene& of) {
       make_memfd(of);
       for (int i = 0; i < 4; ++i) ASSERT_TRUE(send_one(of.q));
     },
     join,
     [](scene& of) {
       const auto done = of.own.send_copy("x", 1, deadline::after(1ms));
       if (!done && done.error().code != errc::timeout) of.why = done.error();
     }},
    {"receive in vain", make_memfd, join,
     [](scene& of) {
       auto got = of.own.receive(deadline::after(1ms));
       // The right result is the error `timeout`, because no message came. Any other error is reported.
       if (!got && got.error().code != errc::timeout) of.why = got.error();
     }},
    {"send by a feeder",
     [](scene& of) {
       options wanted = small();
       wanted.feeding = feed::thread;
       make(of, wanted);
     },
     join, [](scene& of) { keep(of, send_one(of.own)); }, operation::thread::feeds},
    {"a descriptor for messages",
     [](scene& of) {
       make_memfd(of);
       ASSERT_TRUE(send_one(of.q));
     },
     join, [](scene& of) { await_event(of, of.own.message_fd()); }, operation::thread::watches},
    {"a descriptor for room", make_memfd, join, [](scene& of) { await_event(of, of.own.room_fd()); },
     operation::thread::watches},
    {"recover", make_memfd, join, [](scene& of) { (void)of.own.recover(); }},
    {"inspect", make_memfd, join, [](scene& of) { (void)of.own.inspect(); }},
    {"inspect by name", make_named, nothing,
     [](scene& of) {
       auto seen = inspect(of.name);
       if (!seen) of.why = seen.error();
     }},
    {"gc", make_named, nothing,
     [](scene& of) {
       auto done = gc();
       if (!done) of.why = done.error();
       // The queue is in use. gc() must not remove it, even if the system call that would show this has failed.
       if (done && !done->removed.empty()) of.why = error{errc::system, 0, 0, "gc removed a queue that is in use"};
     }},
};

enum : int { kGood = 0, kError = 1, kLeak = 2, kUnnamed = 4, kMisnamed = 5 };

// Runs the operation once with the fault `how`. The exit status of the child says whether the operation failed, and
// whether it left something behind. `text` receives the error text. Then checks that the queue is intact.
faulted run(const operation& what, const fault& how, std::string& text) {
  scene here;
  what.prepare(here);
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  holdings before;
  const faulted found = injector::run(
      how,
      [&] {
        // During the first call of now(), libraries make objects that they keep. The second call counts these objects,
        // too.
        (void)holdings::now();
        before = holdings::now();
        what.join(here);
      },
      [&] { what.operate(here); },
      [&] {
        if (here.why) {
          const std::string& said = here.why->text;
          if (write(ends[1], said.data(), said.size()) < 0) return 98;
          if (said.empty()) return static_cast<int>(kUnnamed);
        }
        const std::string name = here.made.name();
        // An operation that attaches to a queue must find out the name of the queue.
        const bool is_misnamed = here.made.fd() >= 0 && here.q.fd() >= 0 && name != here.name;
        here.made = {};
        if (is_misnamed) return static_cast<int>(kMisnamed);
        if (!name.empty() && name != here.name) unlink(("/dev/shm" + name).c_str());
        here.own = {};
        holdings after = holdings::now();
        if (what.starts != operation::thread::none) after.mappings = before.mappings;
        if (!(after == before)) return static_cast<int>(kLeak);
        return static_cast<int>(here.why ? kError : kGood);
      });
  close(ends[1]);
  char said[1024];
  const ssize_t size = read(ends[0], said, sizeof said);
  text.assign(said, size > 0 ? static_cast<std::size_t>(size) : 0);
  close(ends[0]);
  // check_survivor() expects a full queue to refuse a message. A handle with a feeder accepts any number of messages.
  if (here.q.fd() >= 0 && what.starts != operation::thread::feeds) {
    const test::leftovers left = test::check_survivor(here.q);
    EXPECT_EQ(left.broken, "") << what.name;
  }
  return found;
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::enter_mount_namespace()) GTEST_FAIL();
    ASSERT_TRUE(test::mount_memory("/dev/shm", "size=16m"));
  }
};

// True for those system calls of the queue that a signal can interrupt. The sources are the manual page signal(7), and
// the kernel's function shmem_fallocate().
bool is_interruptible(long number) {
  const long those[] = {SYS_fallocate, SYS_poll, SYS_sendmsg, SYS_recvmsg, SYS_futex, SYS_getrandom};
  return std::ranges::find(those, number) != std::end(those);
}

// Runs every operation many times. In each run, a different system call of the operation fails with `error`. Returns
// the numbers of the system calls that failed, each as often as it failed. How many calls an operation makes depends on
// the libraries and on the kernel.
std::multiset<long> fail_each(int error) {
  std::multiset<long> failed;
  for (const operation& what : kOperations) {
    std::string text;
    const faulted whole = run(what, {}, text);
    EXPECT_EQ(whole.status, kGood) << what.name << ": " << text;
    EXPECT_GT(whole.calls, 0u) << what.name;
    bool did_any_fail = false;
    for (unsigned long at = 0; at < whole.calls; ++at) {
      const faulted found = run(what, {fault::kind::fails, at, error}, text);
      // An operation that waits may make fewer calls in this run than in the first run. Then no call fails.
      if (found.hit >= 0) did_any_fail = true;
      if (found.hit < 0 || (error == EINTR && !is_interruptible(found.hit))) continue;
      failed.insert(found.hit);
      const bool good = found.status == kGood || (error != EINTR && found.status == kError);
      EXPECT_TRUE(good) << what.name << ": call " << at << " (number " << found.hit << ") failing with "
                        << std::strerror(error) << " ends with " << found.status << ": " << text;
      if (found.status == kError) {
        EXPECT_FALSE(text.empty()) << what.name;
      }
    }
    EXPECT_TRUE(did_any_fail) << what.name;
  }
  return failed;
}

TEST_F(Faults, EachCallFailsOnce) {
  std::size_t runs = 0;
  for (const int error : {ENOMEM, EMFILE, EPERM}) {
    const auto failed = fail_each(error);
    runs += failed.size();
    for (const long number : {SYS_memfd_create, SYS_openat, SYS_mmap, SYS_madvise, SYS_fcntl, SYS_flock, SYS_eventfd2,
                              SYS_readlink, SYS_rt_sigprocmask}) {
      EXPECT_TRUE(failed.contains(number)) << "call " << number;
    }
  }
  std::printf("%zu operations with a failed call\n", runs);
}

TEST_F(Faults, EachCallIsInterruptedOnce) {
  const auto interrupted = fail_each(EINTR);
  std::printf("%zu operations with an interrupted call\n", interrupted.size());
  // Newer versions of libc make no system call for getrandom().
  for (const long number : {SYS_fallocate, SYS_poll, SYS_sendmsg, SYS_recvmsg, SYS_futex}) {
    EXPECT_TRUE(interrupted.contains(number)) << "call " << number;
  }
}

TEST_F(Faults, ALetterInPiecesArrivesWhole) {
  for (const operation& what : kOperations) {
    const std::string name = what.name;
    if (name != "send a queue" && name != "receive a queue") continue;
    std::string text;
    const unsigned long calls = run(what, {}, text).calls;
    bool was_short = false;
    for (unsigned long at = 0; at < calls; ++at) {
      const faulted found = run(what, {fault::kind::is_short, at, 0}, text);
      EXPECT_EQ(found.status, kGood) << name << ", call " << at << ": " << text;
      was_short |= found.hit == SYS_sendmsg || found.hit == SYS_recvmsg;
    }
    EXPECT_TRUE(was_short) << name;
  }
}

}  // namespace
}  // namespace forksight::ipc
