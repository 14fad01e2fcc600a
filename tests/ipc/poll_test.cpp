// Tests the descriptors for event loops. The descriptor for messages must become readable when there is a message, or
// when the queue has ended. The descriptor for room must become readable when a buffer is free. This must be so even if
// a process dies meanwhile.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "child.hpp"
#include "forksight/ipc.h"
#include "invariants.hpp"
#include "made_queue.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using test::make;
using test::send_number;

options small() { return test::small(4); }

int message_fd(queue& of) {
  const auto fd = of.message_fd();
  if (!fd) ADD_FAILURE() << fd.error().text;
  return fd ? fd.value() : -1;
}

int room_fd(queue& of) {
  const auto fd = of.room_fd();
  if (!fd) ADD_FAILURE() << fd.error().text;
  return fd ? fd.value() : -1;
}

// Waits until the descriptor is readable. If it never becomes readable, the test runs into its timeout.
void wait_for(int fd) {
  pollfd ask{fd, POLLIN, 0};
  EXPECT_EQ(poll(&ask, 1, -1), 1);
  EXPECT_EQ(ask.revents, POLLIN);
}

bool is_readable(int fd) {
  pollfd ask{fd, POLLIN, 0};
  return poll(&ask, 1, 0) == 1;
}

errc code_of_receive(queue& of) {
  const auto got = of.receive(deadline::now());
  EXPECT_FALSE(got);
  return got ? errc::system : got.error().code;
}

TEST(Poll, ReadableAsLongAsThereAreMessages) {
  queue q = make(small());
  const int fd = message_fd(q);
  EXPECT_EQ(message_fd(q), fd);
  EXPECT_FALSE(is_readable(fd));
  for (int round = 0; round < 100; ++round) {
    for (std::uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(send_number(q, i));
    wait_for(fd);
    ASSERT_TRUE(q.receive(deadline::now()));
    wait_for(fd);  // one message is left
    ASSERT_TRUE(q.receive(deadline::now()));
    // The thread that serves the descriptor may have looked just before the last message was taken, and made the
    // descriptor readable again. Then one more call finds nothing, and the descriptor becomes unreadable.
    while (is_readable(fd)) EXPECT_EQ(code_of_receive(q), errc::timeout);
  }
}

TEST(Poll, ACallThatFindsNothingMakesItUnreadable) {
  queue q = make(small());
  queue other = std::move(queue::attach(q.fd())).value();
  const int fd = message_fd(q);
  ASSERT_TRUE(send_number(q, 1));
  wait_for(fd);
  // Another consumer takes the message before the polling consumer does. receive() waits until the polling consumer has
  // missed its turn.
  ASSERT_TRUE(other.receive());
  EXPECT_TRUE(is_readable(fd));
  EXPECT_EQ(code_of_receive(q), errc::timeout);
  EXPECT_FALSE(is_readable(fd));
  ASSERT_TRUE(send_number(q, 2));
  wait_for(fd);
}

// With EPOLLET, each message must cause an event after the consumer has found nothing.
TEST(Poll, NoEdgeIsLost) {
  constexpr std::uint32_t kMessages = 2'000;
  queue q = make(small());
  child producer([&] {
    auto own = q.reattach_after_fork();
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      if (!send_number(*own, i, deadline::never())) return 1;
    }
    return 0;
  });
  const int events = epoll_create1(EPOLL_CLOEXEC);
  epoll_event what{};
  what.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(epoll_ctl(events, EPOLL_CTL_ADD, message_fd(q), &what), 0);
  for (std::uint32_t next = 0; next < kMessages;) {
    ASSERT_EQ(epoll_wait(events, &what, 1, -1), 1);
    while (auto got = q.receive(deadline::now())) {
      std::uint32_t number = 0;
      std::memcpy(&number, got->data(), sizeof number);
      ASSERT_EQ(number, next++);
    }
  }
  close(events);
  EXPECT_EQ(producer.wait(), 0);
}

TEST(Poll, TheEndOfTheLastProducerMakesItReadable) {
  for (const bool is_killed : {false, true}) {
    options wanted = small();
    wanted.as = role::consumer;
    queue q = make(wanted);
    const baton is_there, go;
    child producer([&] {
      auto own = queue::attach(q.fd(), role::producer);
      is_there.pass();
      is_killed ? static_cast<void>(pause()) : go.take();
      return 0;
    });
    is_there.take();
    const int fd = message_fd(q);
    EXPECT_FALSE(is_readable(fd));
    if (is_killed) {
      producer.kill_and_wait();
    } else {
      go.pass();
    }
    wait_for(fd);
    EXPECT_EQ(code_of_receive(q), is_killed ? errc::producer_died : errc::closed);
    EXPECT_TRUE(is_readable(fd)) << "the end of the queue no longer makes the descriptor readable";
  }
}

TEST(Poll, TheEndOfTheGraceTimeMakesItReadable) {
  options wanted = small();
  wanted.as = role::consumer;
  wanted.grace = 20ms;
  queue q = make(wanted);
  { const auto producer = queue::attach(q.fd(), role::producer); }
  const int fd = message_fd(q);
  errc code = errc::timeout;
  while (code == errc::timeout) {
    wait_for(fd);
    code = code_of_receive(q);
  }
  EXPECT_EQ(code, errc::closed);
}

TEST(Poll, AMessageOfAConsumerThatIsKilledMakesItReadable) {
  options wanted = small();
  wanted.after_death = on_death::redeliver;
  queue q = make(wanted);
  ASSERT_TRUE(send_number(q, 7));
  const baton holds;
  child consumer([&] {
    auto own = q.reattach_after_fork();
    const auto got = own->receive();
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  const int fd = message_fd(q);
  EXPECT_FALSE(is_readable(fd));
  consumer.kill_and_wait();
  wait_for(fd);
  auto got = q.receive(deadline::now());
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(got->deliveries(), 2u);
}

TEST(Poll, RoomIsReadableWhileABufferIsFree) {
  queue q = make(small());
  const int fd = room_fd(q);
  wait_for(fd);
  std::vector<loan> all;
  while (auto one = q.acquire(deadline::now())) all.push_back(std::move(one).value());
  EXPECT_EQ(all.size(), 4u);
  EXPECT_FALSE(is_readable(fd));
  all.pop_back();
  wait_for(fd);
}

TEST(Poll, TheDeathOfAProcessThatHoldsAllBuffersMakesRoomReadable) {
  queue q = make(small());
  const baton holds;
  child other([&] {
    auto own = q.reattach_after_fork();
    std::vector<loan> all;
    while (auto one = own->acquire(deadline::now())) all.push_back(std::move(one).value());
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  const int fd = room_fd(q);
  EXPECT_FALSE(is_readable(fd));
  other.kill_and_wait();
  wait_for(fd);
  EXPECT_TRUE(q.acquire(deadline::now()));
}

TEST(Poll, ACancelledHandleIsReadable) {
  queue q = make(small());
  const int fd = message_fd(q);
  q.cancel();
  wait_for(fd);
  EXPECT_EQ(code_of_receive(q), errc::cancelled);
}

TEST(Poll, AForkedChildGetsADescriptorOfItsOwn) {
  if (!test::kForkedChildMayStartThread) GTEST_SKIP() << test::kNoThreadAfterFork;
  queue q = make(small());
  const int fd = message_fd(q);
  child one([&] {
    if (q.message_fd().error().code != errc::used_after_fork) return 1;
    auto own = q.reattach_after_fork();
    const auto its = own->message_fd();
    if (!its || its.value() == fd) return 2;
    if (!send_number(*own, 1)) return 3;
    pollfd ask{its.value(), POLLIN, 0};
    if (poll(&ask, 1, -1) != 1 || !own->receive(deadline::now())) return 4;
    q = {};  // closes the parent's handle, whose thread does not exist in this child
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  ASSERT_TRUE(send_number(q, 2));
  wait_for(fd);
  EXPECT_TRUE(q.receive(deadline::now()));
}

// One consumer polls a descriptor, and another one waits in receive(). Both must get messages.
TEST(Poll, BothAConsumerThatPollsAndOneThatWaitsAreServed) {
  constexpr int kMessages = 400;
  queue q = make(small());
  child waits([&] {
    auto own = q.reattach_after_fork();
    int count = 0;
    while (own->receive()) ++count;
    return count == 0 ? 1 : 0;
  });
  child polls([&] {
    auto own = q.reattach_after_fork();
    const auto fd = own->message_fd();
    if (!fd) return 2;
    for (int count = 0;;) {
      pollfd ask{fd.value(), POLLIN, 0};
      if (poll(&ask, 1, -1) != 1) return 3;
      auto got = own->receive(deadline::now());
      if (got) ++count;
      if (!got && got.error().code != errc::timeout) return count == 0 ? 1 : 0;
    }
  });
  const auto waiting = [&] {
    const auto all = q.inspect().participants;
    return std::ranges::count(all, true, &snapshot::participant::waits_for_message);
  };
  while (waiting() != 2) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(send_number(q, 1, deadline::never()));
  q.shutdown(true);
  EXPECT_EQ(waits.wait(), 0);
  EXPECT_EQ(polls.wait(), 0);
}

TEST(Poll, AHandleHasNoDescriptorForARoleThatItDoesNotHave) {
  options wanted = small();
  wanted.as = role::producer;
  queue q = make(wanted);
  EXPECT_EQ(q.message_fd().error().code, errc::role);
  EXPECT_TRUE(q.room_fd());
  queue empty;
  EXPECT_EQ(empty.message_fd().error().code, errc::closed);
}

TEST(Poll, TheCFunctionsGiveBothDescriptors) {
  forksight_queue* q = nullptr;
  forksight_queue_error why{};
  ASSERT_EQ(forksight_queue_create(nullptr, &q, &why), FORKSIGHT_QUEUE_OK);
  int message = -1, room = -1;
  ASSERT_EQ(forksight_queue_message_fd(q, &message, &why), FORKSIGHT_QUEUE_OK) << why.text;
  ASSERT_EQ(forksight_queue_room_fd(q, &room, &why), FORKSIGHT_QUEUE_OK) << why.text;
  EXPECT_EQ(forksight_queue_room_fd(nullptr, &room, &why), FORKSIGHT_QUEUE_BAD_OPTION);
  EXPECT_EQ(forksight_queue_room_fd(q, nullptr, &why), FORKSIGHT_QUEUE_BAD_OPTION);
  wait_for(room);
  EXPECT_FALSE(is_readable(message));
  ASSERT_EQ(forksight_queue_send_copy(q, "x", 1, -1, &why), FORKSIGHT_QUEUE_OK);
  wait_for(message);
  forksight_queue_close(q);
}

}  // namespace
}  // namespace forksight::ipc
