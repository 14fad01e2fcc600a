// Tests how a process gets a queue through a socket or by name, how names are removed, and the feeder thread.
#include "forksight/ipc/handover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include "child.hpp"
#include "forksight/ipc.h"
#include "invariants.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Sockets {
 public:
  explicit Sockets(int type = SOCK_STREAM) {
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends_) != 0) std::abort();
  }
  ~Sockets() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  int ours() const { return ends_[0]; }
  int theirs() const { return ends_[1]; }
  void hang_up() { close(std::exchange(ends_[1], -1)); }

 private:
  int ends_[2] = {-1, -1};
};

options small(strategy st = strategy::memfd) {
  options wanted;
  wanted.slots = wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.backing = st;
  return wanted;
}

std::string text_of(const message& from) { return {static_cast<const char*>(from.data()), from.size()}; }

TEST(Handover, AQueueGoesOverASocketOfEitherKind) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const Sockets sockets(type);
    auto made = queue::create(small());
    ASSERT_TRUE(made);
    child other([&] {
      auto got = receive_queue(sockets.theirs(), role::producer, deadline::after(10s));
      return got && got->send_copy("hello", 5) ? 0 : 1;
    });
    ASSERT_TRUE(send_queue(sockets.ours(), *made, deadline::after(10s)));
    auto got = made->receive(deadline::after(10s));
    ASSERT_TRUE(got) << got.error().text;
    EXPECT_EQ(text_of(*got), "hello");
    EXPECT_EQ(other.wait(), 0);
  }
}

// A deadline that has long passed is over at once. The difference to the present time does not fit into its type.
TEST(Handover, ADeadlineOfTheDistantPastIsOver) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const deadline past = deadline::after(std::chrono::nanoseconds::min());
  const auto start = deadline::clock::now();
  EXPECT_EQ(receive_queue(sockets[1], role::any, past).error().code, errc::timeout);
  const deadline before_all(deadline::clock::time_point(std::chrono::nanoseconds::min() + std::chrono::nanoseconds(1)));
  EXPECT_EQ(receive_queue(sockets[1], role::any, before_all).error().code, errc::timeout);
  EXPECT_LT(deadline::clock::now() - start, std::chrono::seconds(20));
  for (const int fd : sockets) close(fd);
}

TEST(Handover, AReadOnlyPayloadIsReadOnlyForTheOthers) {
  const Sockets sockets;
  options wanted = small();
  wanted.readonly_payload = true;
  auto made = queue::create(wanted);
  ASSERT_TRUE(made) << made.error().text;
  ASSERT_TRUE(made->send_copy("hello", 5));
  ASSERT_TRUE(send_queue(sockets.ours(), *made));
  auto got = receive_queue(sockets.theirs());
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(got->acquire().error().code, errc::role);
  EXPECT_EQ(text_of(got->receive(deadline::now()).value()), "hello");
}

TEST(Handover, CAttachesToAReadOnlyPayloadByBothDescriptors) {
  options wanted = small();
  wanted.readonly_payload = true;
  auto made = queue::create(wanted);
  ASSERT_TRUE(made) << made.error().text;
  ASSERT_TRUE(made->send_copy("hello", 5));
  forksight_queue* got = nullptr;
  forksight_queue_error why{};
  EXPECT_EQ(forksight_queue_attach(made->fd(), FORKSIGHT_QUEUE_CONSUMER, &got, &why), FORKSIGHT_QUEUE_BAD_OPTION);
  EXPECT_NE(std::string(why.text).find("attach with both descriptors"), std::string::npos) << why.text;
  ASSERT_EQ(forksight_queue_attach_with_payload(made->fd(), made->payload_fd(), FORKSIGHT_QUEUE_CONSUMER, &got, &why),
            FORKSIGHT_QUEUE_OK)
      << why.text;
  EXPECT_GE(forksight_queue_payload_fd(got), 0);
  EXPECT_NE(forksight_queue_payload_fd(got), made->payload_fd()) << "the handle has a copy of its own";
  forksight_message* message = nullptr;
  ASSERT_EQ(forksight_queue_receive(got, 0, &message, &why), FORKSIGHT_QUEUE_OK) << why.text;
  EXPECT_EQ(std::string(static_cast<const char*>(forksight_message_data(message)), forksight_message_size(message)),
            "hello");
  forksight_message_release(message);
  forksight_queue_close(got);
  auto plain = queue::create(small());
  ASSERT_TRUE(plain);
  ASSERT_EQ(forksight_queue_attach_with_payload(plain->fd(), -1, FORKSIGHT_QUEUE_ANY, &got, &why), FORKSIGHT_QUEUE_OK);
  EXPECT_EQ(forksight_queue_payload_fd(got), -1);
  forksight_queue_close(got);
}

TEST(Handover, SaysThatThereIsNoDescriptorLeft) {
  const Sockets sockets;
  auto made = queue::create(small());
  ASSERT_TRUE(made);
  ASSERT_TRUE(send_queue(sockets.ours(), *made));
  child other([&] {
    const rlimit none{static_cast<rlim_t>(sockets.theirs()) + 1, 1024};
    setrlimit(RLIMIT_NOFILE, &none);
    // Takes all descriptors below the limit.
    while (dup(0) >= 0) {
    }
    const auto got = receive_queue(sockets.theirs(), role::any, deadline::after(10s));
    if (got.has_value() || got.error().code != errc::fd_limit) return 1;
    return got.error().text.find("RLIMIT_NOFILE is") == std::string::npos ? 2 : 0;
  });
  EXPECT_EQ(other.wait(), 0);
}

TEST(Handover, APeerThatClosesSendsNothingOrSendsNonsenseIsAnError) {
  Sockets gone;
  gone.hang_up();
  EXPECT_EQ(receive_queue(gone.ours()).error().code, errc::closed);
  const Sockets silent;
  EXPECT_EQ(receive_queue(silent.ours(), role::any, deadline::after(10ms)).error().code, errc::timeout);
  const Sockets strange;
  ASSERT_EQ(write(strange.theirs(), "nonsense", 8), 8);
  EXPECT_EQ(receive_queue(strange.ours()).error().code, errc::untrusted);
  const int file = memfd_create("file", MFD_CLOEXEC);
  EXPECT_EQ(receive_queue(file).error().code, errc::system);
  close(file);
}

TEST(Named, IsFoundByItsName) {
  auto made = queue::create(small(strategy::named));
  ASSERT_TRUE(made) << made.error().text;
  const std::string name = made->name();
  auto other = queue::attach(name);
  ASSERT_TRUE(other) << other.error().text;
  ASSERT_TRUE(made->send_copy("hello", 5));
  EXPECT_EQ(text_of(other->receive(deadline::now()).value()), "hello");
  auto seen = inspect(name);
  ASSERT_TRUE(seen) << seen.error().text;
  EXPECT_EQ(seen->participants.size(), 2u);
  shm_unlink(name.c_str());
}

TEST(Named, GcRemovesOnlyQueuesThatNobodyUses) {
  auto used = queue::create(small(strategy::named));
  ASSERT_TRUE(used);
  std::vector<std::string> left;
  for (int i = 0; i < 100; ++i) {
    const baton named;
    std::array<char, 64> name{};
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    child victim([&] {
      auto made = queue::create(small(strategy::named));
      if (!made || write(ends[1], made->name().c_str(), made->name().size()) < 0) return 1;
      raise(SIGKILL);
      return 0;
    });
    ASSERT_GT(read(ends[0], name.data(), name.size() - 1), 0);
    close(ends[0]);
    close(ends[1]);
    EXPECT_EQ(victim.wait(), 128 + SIGKILL);
    left.emplace_back(name.data());
  }
  for (const std::string& name : left) ASSERT_TRUE(test::wait_until_unused(name)) << name;
  const auto said = gc(true);
  ASSERT_TRUE(said.has_value());
  for (const std::string& name : left) EXPECT_TRUE(std::filesystem::exists("/dev/shm" + name));
  auto done = gc();
  ASSERT_TRUE(done);
  for (const std::string& name : left) {
    EXPECT_THAT(done->removed, Contains(name));
    EXPECT_FALSE(std::filesystem::exists("/dev/shm" + name));
  }
  EXPECT_THAT(done->in_use, Contains(used->name()));
  EXPECT_THAT(done->removed, Not(Contains(used->name())));
  EXPECT_TRUE(queue::attach(used->name()));
  shm_unlink(used->name().c_str());
}

bool has_name(const std::string& name) { return std::filesystem::exists("/dev/shm" + name); }

TEST(Named, TheNameIsRemovedOnceUnlinkAtMembersHaveAttached) {
  options wanted = small(strategy::named);
  wanted.unlink_at = 3;
  auto first = queue::create(wanted);
  ASSERT_TRUE(first);
  const std::string name = first->name();
  ASSERT_TRUE(queue::attach(name));  // this handle closes at once, so it does not count
  auto second = queue::attach(name);
  ASSERT_TRUE(second);
  EXPECT_TRUE(has_name(name));
  child third([&] {
    auto own = queue::attach(name);
    return own && own->send_copy("third", 5) && !has_name(name) ? 0 : 1;
  });
  EXPECT_EQ(third.wait(), 0);
  EXPECT_FALSE(has_name(name));
  EXPECT_EQ(queue::attach(name).error().code, errc::not_found);
  // The queue itself still works, also in a forked child.
  EXPECT_EQ(second->receive(deadline::after(10s))->size(), 5U);
  child forked([&] {
    auto own = first->reattach_after_fork();
    return own && own->send_copy("x", 1) ? 0 : 1;
  });
  EXPECT_EQ(forked.wait(), 0);
  EXPECT_TRUE(second->receive(deadline::after(10s)));
}

TEST(Named, UnlinkAtIsRefusedForOtherQueues) {
  options wanted = small(strategy::memfd);
  wanted.unlink_at = 2;
  EXPECT_THAT(queue::create(wanted).error().text,
              HasSubstr("unlink_at is 2, but only a queue of strategy::named has a name: set backing"));
  wanted.backing = strategy::named;
  wanted.unlink_at = 1000;
  EXPECT_EQ(queue::create(wanted).error().code, errc::bad_option);
}

TEST(Named, AWatcherRemovesTheNameWhenTheLastUserEnds) {
  const baton may_end;
  std::array<char, 64> text{};
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  child user([&] {
    auto made = queue::create(small(strategy::named));
    if (!made || write(ends[1], made->name().c_str(), made->name().size()) < 0) return 1;
    may_end.take();
    raise(SIGKILL);
    return 0;
  });
  ASSERT_GT(read(ends[0], text.data(), text.size() - 1), 0);
  close(ends[0]);
  close(ends[1]);
  const std::string name = text.data();
  const auto watch = [&] { return remove_when_unused(name) ? 0 : 1; };
  // The first watcher is killed, and a second one takes its place. The second must still remove the name.
  child watcher(watch);
  EXPECT_EQ(watcher.kill_and_wait(), 128 + SIGKILL);
  child another(watch);
  auto second = std::make_unique<result<queue>>(queue::attach(name));
  ASSERT_TRUE(*second);
  may_end.pass();
  EXPECT_EQ(user.wait(), 128 + SIGKILL);
  EXPECT_TRUE((*second)->send_copy("x", 1));
  EXPECT_TRUE(has_name(name));
  second.reset();
  EXPECT_EQ(another.wait(), 0);
  EXPECT_FALSE(has_name(name));
  EXPECT_EQ(remove_when_unused(name).error().code, errc::not_found);
  EXPECT_EQ(remove_when_unused("/etc/passwd").error().code, errc::bad_option);
}

TEST(Named, AttachRefusesWhatIsNoQueue) {
  EXPECT_EQ(queue::attach("/forksight-0123456789abcdef0123456789abcdef").error().code, errc::not_found);
  EXPECT_EQ(queue::attach("nonsense").error().code, errc::bad_option);
  const int file = memfd_create("file", MFD_CLOEXEC);
  EXPECT_EQ(queue::attach(file).error().code, errc::untrusted);
  fchmod(file, 0600);
  EXPECT_EQ(queue::attach(file).error().code, errc::corrupt);
  close(file);
  EXPECT_EQ(queue::attach(file).error().code, errc::not_found);
}

TEST(Feeder, SendsInTheBackgroundAndCloseProducerWaitsForIt) {
  options wanted = small();
  wanted.feeding = feed::thread;
  auto made = queue::create(wanted);
  ASSERT_TRUE(made);
  child consumer([&] {
    auto own = queue::attach(made->fd(), role::consumer);
    for (int i = 0; i < 100; ++i) {
      auto got = own->receive(deadline::after(10s));
      if (!got || text_of(*got) != std::to_string(i)) return 1;
    }
    return 0;
  });
  for (int i = 0; i < 100; ++i) {
    const std::string text = std::to_string(i);
    ASSERT_TRUE(made->send_copy(text.data(), text.size()));
  }
  EXPECT_TRUE(made->close_producer());
  EXPECT_EQ(consumer.wait(), 0);
}

TEST(Feeder, ExitLosesTheMessagesOnItsList) {
  options wanted = small();
  wanted.feeding = feed::thread;
  auto made = queue::create(wanted);
  ASSERT_TRUE(made);
  child producer([&] {
    auto own = queue::attach(made->fd(), role::producer);
    for (int i = 0; i < 100; ++i) {
      if (!own->send_copy(&i, sizeof i)) return 1;
    }
    _exit(7);
  });
  EXPECT_EQ(producer.wait(), 7);
  int got = 0;
  while (made->receive(deadline::after(200ms))) ++got;
  EXPECT_LT(got, 100);
}

TEST(Feeder, WithAtforkHandlersAChildCanLockTheInheritedHandle) {
  options wanted = small();
  wanted.feeding = feed::thread;
  wanted.atfork_handlers = true;
  auto made = queue::create(wanted);
  ASSERT_TRUE(made);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(made->send_copy(&i, sizeof i));
    child other([&] {
      alarm(20);
      return made->send_copy("x", 1).error().code == errc::used_after_fork ? 0 : 1;
    });
    ASSERT_EQ(other.wait(), 0);
    ASSERT_TRUE(made->receive(deadline::after(10s)));
  }
}

}  // namespace
}  // namespace forksight::ipc
