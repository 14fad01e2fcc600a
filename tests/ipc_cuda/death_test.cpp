// Writers and readers of a pool are killed. The tests check what the other processes can still read and write.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <thread>

#include "support.hpp"

namespace forksight::ipc_cuda::test {
namespace {

class Death : public testing::TestWithParam<memory> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Death, testing::Values(memory::vmm_fd, memory::legacy),
                         [](const auto& of) { return of.param == memory::legacy ? "legacy" : "vmm_fd"; });

[[noreturn]] void wait_for_the_end() {
  for (;;) pause();
}

TEST_P(Death, OfAReaderGivesItsBufferBack) {
  const sockets way, second_way;
  const baton is_held, was_killed, is_done;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    send_filled(at, pool, 1);
    was_killed.take();
    gpu_loan again = must(pool.acquire(at.on, soon()));
    at.fill(again.data(), 2, 5000);
    must(pool.send(std::move(again), 5000, at.on, soon()));
    must(send_pool(second_way.ours(), pool, soon()));
    is_done.take();
    // The reader died without closing the pool. close() succeeds nevertheless.
    must(pool.close());
    return 0;
  });
  child victim([&]() -> int {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    const gpu_message got = must(pool.receive(at.on, soon()));
    at.shut_gate();
    is_held.pass();
    wait_for_the_end();
  });
  child survivor([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(second_way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    MUST(got.deliveries() == 1 && at.is_filled(got.data(), 2, 5000));
    must(got.release(at.on));
    must(pool.close());
    is_done.pass();
    return 0;
  });
  is_held.take();
  EXPECT_EQ(victim.kill_and_wait(), 128 + SIGKILL);
  was_killed.pass();
  EXPECT_EQ(survivor.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST_P(Death, OfAReaderThatHeldABufferDoesNotMakeAcquireWait) {
  const sockets way;
  const baton is_held, was_killed;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    send_filled(at, pool, 1);
    was_killed.take();
    at.shut_gate();
    const gpu_loan again = must(pool.acquire(at.aside, soon()));
    MUST(at.stream_query(at.on) == kNotReady);
    at.open_gate();
    return 0;
  });
  child victim([&]() -> int {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    const gpu_message got = must(pool.receive(at.on, soon()));
    is_held.pass();
    wait_for_the_end();
  });
  is_held.take();
  EXPECT_EQ(victim.kill_and_wait(), 128 + SIGKILL);
  was_killed.pass();
  EXPECT_EQ(writer.wait(), 0);
}

TEST_P(Death, OfAReaderWithUnfinishedWorkOnAReleasedBufferBlocksNobody) {
  const sockets way;
  const baton is_released, was_killed;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    send_filled(at, pool, 1);
    was_killed.take();
    // The dead reader's work is never finished. The writer's stream must not wait for it.
    send_filled(at, pool, 2);
    MUST(at.stream_synchronize(at.on) == 0);
    must(pool.close());
    return 0;
  });
  child victim([&]() -> int {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    at.shut_gate();
    must(got.release(at.on));
    is_released.pass();
    wait_for_the_end();
  });
  is_released.take();
  EXPECT_EQ(victim.kill_and_wait(), 128 + SIGKILL);
  was_killed.pass();
  EXPECT_EQ(writer.wait(), 0);
}

// The writer's stream waits for the work of a reader, and the writer's host thread waits for the stream. Another reader
// waits for a message.
TEST_P(Death, OfAReaderReleasesAStreamThatWaitsForItsWork) {
  const sockets way, second_way;
  const baton is_released, is_waiting, is_done;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    send_filled(at, pool, 1);
    is_released.take();
    must(send_pool(second_way.ours(), pool, soon()));
    gpu_loan again = must(pool.acquire(at.on, soon()));
    at.fill(again.data(), 2, 5000);
    MUST(at.stream_query(at.on) == kNotReady);
    is_waiting.pass();
    MUST(at.stream_synchronize(at.on) == 0);
    must(pool.send(std::move(again), 5000, at.on, soon()));
    is_done.take();
    must(pool.close());
    return 0;
  });
  child victim([&]() -> int {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    at.shut_gate();
    must(got.release(at.on));
    is_released.pass();
    wait_for_the_end();
  });
  child survivor([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(second_way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    MUST(at.is_filled(got.data(), 2, 5000));
    must(got.release(at.on));
    must(pool.close());
    is_done.pass();
    return 0;
  });
  is_waiting.take();
  EXPECT_EQ(victim.kill_and_wait(), 128 + SIGKILL);
  EXPECT_EQ(survivor.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST_P(Death, OfAReaderWithRedeliverGivesItsMessageToAnother) {
  const sockets way, second_way;
  const baton is_held, is_done;
  child writer([&] {
    gpu at;
    pool_options wanted = small(GetParam(), 1);
    wanted.after_death = ipc::on_death::redeliver;
    gpu_pool pool = make_pool(wanted, way.ours());
    must(send_pool(second_way.ours(), pool, soon()));
    send_filled(at, pool, 3);
    is_done.take();
    // One reader died while it held the buffer. Another reader has released the buffer.
    send_filled(at, pool, 4);
    MUST(at.stream_synchronize(at.on) == 0);
    must(pool.close());
    return 0;
  });
  child victim([&]() -> int {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    const gpu_message got = must(pool.receive(at.on, soon()));
    is_held.pass();
    wait_for_the_end();
  });
  is_held.take();
  EXPECT_EQ(victim.kill_and_wait(), 128 + SIGKILL);
  child survivor([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(second_way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    MUST(got.deliveries() == 2 && at.is_filled(got.data(), 3, 5000));
    must(got.release(at.on));
    must(pool.close());
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(survivor.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

// The sockets and the batons of a writer and its reader. The reader passes `is_open` when it has received the pool. The
// writer passes `is_sent` when it has sent all messages. The test passes `was_killed` when it has killed the writer.
struct stage {
  sockets way;
  baton is_open, is_sent, was_killed;
};

// Starts a writer that sends three messages. Its device finishes the work on the first two messages, but not on the
// third. After the third send(), the writer calls no function of the pool any more.
child start_writer(const stage& on, memory kind) {
  return child([&on, kind]() -> int {
    gpu at, third;
    gpu_pool pool = make_pool(small(kind, 3), on.way.ours());
    send_filled(at, pool, 1);
    at.shut_gate();
    third.shut_gate();
    send_filled(at, pool, 2);
    send_filled(third, pool, 3);
    at.open_gate();
    MUST(at.stream_synchronize(at.on) == 0);
    on.is_open.take();
    on.is_sent.pass();
    wait_for_the_end();
  });
}

TEST(DeadWriter, FinishedMessagesAreStillReceivedAndUnfinishedOnesAreNot) {
  stage on;
  child writer = start_writer(on, memory::vmm_fd);
  const auto pid = static_cast<std::uint32_t>(writer.pid());
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(on.way.theirs(), soon()));
    gpu_message first = must(pool.receive(at.on, soon()));
    on.is_open.pass();
    on.was_killed.take();
    // The message was received before the writer died, and is read afterwards.
    MUST(at.is_filled(first.data(), 1, 5000));
    must(first.release(at.on));
    gpu_message second = must(pool.receive(at.on, soon()));
    MUST(at.is_filled(second.data(), 2, 5000));
    must(second.release(at.on));
    const auto third = pool.receive(at.on, soon());
    MUST(!third && third.error().code == errc::producer_died && third.error().pid == pid);
    MUST(third.error().text.find("had not finished") != std::string::npos);
    const auto none = pool.receive(at.on, soon());
    MUST(!none && none.error().code == errc::producer_died && none.error().pid == pid);
    must(pool.close());
    return 0;
  });
  on.is_sent.take();
  EXPECT_EQ(writer.kill_and_wait(), 128 + SIGKILL);
  on.was_killed.pass();
  EXPECT_EQ(reader.wait(), 0);
}

TEST(DeadWriter, InAnotherPidNamespaceIsNoticed) {
  child probe([] { return unshare(CLONE_NEWPID | CLONE_NEWNS) == 0 ? 0 : 1; });
  if (probe.wait() != 0) GTEST_SKIP() << "a pid namespace: not permitted (CAP_SYS_ADMIN)";
  stage on;
  child writer = start_writer(on, memory::vmm_fd);
  const auto pid = static_cast<std::uint32_t>(writer.pid());
  child outer([&] {
    MUST(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0);
    child reader([&] {
      MUST(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
      MUST(mount("proc", "/proc", "proc", 0, nullptr) == 0);
      gpu at;
      gpu_pool pool = must(receive_pool(on.way.theirs(), soon()));
      for (const unsigned char value : {static_cast<unsigned char>(1), static_cast<unsigned char>(2)}) {
        gpu_message got = must(pool.receive(at.on, soon()));
        MUST(at.is_filled(got.data(), value, 5000));
        must(got.release(at.on));
        if (value == 1) on.is_open.pass();
      }
      on.was_killed.take();
      for (int again = 0; again < 2; ++again) {
        const auto none = pool.receive(at.on, soon());
        MUST(!none && none.error().code == errc::producer_died && none.error().pid == pid);
      }
      must(pool.close());
      return 0;
    });
    return reader.wait();
  });
  on.is_sent.take();
  EXPECT_EQ(writer.kill_and_wait(), 128 + SIGKILL);
  on.was_killed.pass();
  EXPECT_EQ(outer.wait(), 0);
}

// The stream of one reader waits for a message that the device never finishes. The host thread of that reader waits for
// the stream. Another reader waits for a message.
TEST(DeadWriter, ReleasesAStreamThatWaitsForItsWork) {
  const sockets way, other_way;
  const baton is_open, is_held;
  child writer([&]() -> int {
    gpu at;
    gpu_pool pool = make_pool(small(memory::vmm_fd), way.ours());
    must(send_pool(other_way.ours(), pool, soon()));
    is_open.take();
    is_open.take();
    at.shut_gate();
    send_filled(at, pool, 1);
    wait_for_the_end();
  });
  const auto reader = [&](const sockets& from) {
    return [&] {
      gpu at;
      gpu_pool pool = must(receive_pool(from.theirs(), soon()));
      is_open.pass();
      auto got = pool.receive(at.on, soon());
      if (got) {
        at.copy_later(got->data(), 5000);
        is_held.pass();
        MUST(at.stream_synchronize(at.on) == 0);
        const auto told = got->release(at.on);
        MUST(!told && told.error().code == errc::producer_died);
        MUST(told.error().text.find("not complete") != std::string::npos);
      } else {
        MUST(got.error().code == errc::producer_died);
      }
      must(pool.close());
      return 0;
    };
  };
  child one(reader(way)), two(reader(other_way));
  is_held.take();
  EXPECT_EQ(writer.kill_and_wait(), 128 + SIGKILL);
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(two.wait(), 0);
}

// When the writer dies, the reader's device may still work on the memory. So the memory stays open in the reader until
// its last message and its last handle have ended.
TEST(DeadWriter, OfLegacyMemoryReceiveFailsAndTheMemoryStaysOpenForPendingWork) {
  stage on;
  child writer = start_writer(on, memory::legacy);
  const auto pid = static_cast<std::uint32_t>(writer.pid());
  child reader([&] {
    gpu at, other;
    gpu_pool pool = must(receive_pool(on.way.theirs(), soon()));
    gpu_message first = must(pool.receive(at.on, soon()));
    gpu_message second = must(pool.receive(at.on, soon()));
    gpu_message third = must(pool.receive(other.on, soon()));
    at.shut_gate();
    at.copy_later(second.data(), 5000);
    on.is_open.pass();
    on.was_killed.take();
    for (int again = 0; again < 2; ++again) {
      const auto none = pool.receive(at.on, soon());
      MUST(!none && none.error().code == errc::producer_died && none.error().pid == pid);
    }
    MUST(first.data() == 0 && second.data() == 0);
    must(first.release(at.on));
    must(second.release(at.on));
    const auto told = third.release(other.on);
    MUST(!told && told.error().code == errc::producer_died);
    std::thread opener([&] {
      MUST(at.context_set(at.context) == 0);
      at.open_gate();
    });
    must(pool.close());
    opener.join();
    MUST(at.stream_synchronize(at.on) == 0 && at.has_copied(2, 5000));
    return 0;
  });
  on.is_sent.take();
  EXPECT_EQ(writer.kill_and_wait(), 128 + SIGKILL);
  on.was_killed.pass();
  EXPECT_EQ(reader.wait(), 0);
}

TEST_P(Death, OfAWriterBeforeItsPoolIsReceivedIsReported) {
  const sockets way;
  const baton is_sent;
  child writer([&]() -> int {
    gpu at;
    const gpu_pool pool = make_pool(small(GetParam()), way.ours());
    is_sent.pass();
    wait_for_the_end();
  });
  is_sent.take();
  const auto pid = static_cast<std::uint32_t>(writer.pid());
  EXPECT_EQ(writer.kill_and_wait(), 128 + SIGKILL);
  child reader([&] {
    gpu at;
    const auto none = receive_pool(way.theirs(), soon());
    MUST(!none && none.error().code == errc::producer_died && none.error().pid == pid);
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
}

}  // namespace
}  // namespace forksight::ipc_cuda::test
