// Processes that share a pool. None of them dies.
#include <gtest/gtest.h>

#include "support.hpp"

namespace forksight::ipc_cuda::test {
namespace {

class Pool : public testing::TestWithParam<memory> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Pool, testing::Values(memory::vmm_fd, memory::legacy),
                         [](const auto& of) { return of.param == memory::legacy ? "legacy" : "vmm_fd"; });

TEST_P(Pool, BytesArriveAndBuffersComeBack) {
  const sockets way;
  constexpr int kMessages = 40;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 3), way.ours());
    for (int i = 0; i < kMessages; ++i)
      send_filled(at, pool, static_cast<unsigned char>(i), 100 + static_cast<std::size_t>(i));
    // Waits until the reader has closed the pool, and says so by a byte.
    char byte = 0;
    MUST(read(way.ours(), &byte, 1) == 1);
    must(pool.close());
    return 0;
  });
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    MUST(pool.kind() == GetParam() && pool.buffer_bytes() == 5000);
    for (int i = 0; i < kMessages; ++i) {
      gpu_message got = must(pool.receive(at.on, soon()));
      MUST(got.size() == 100 + static_cast<std::size_t>(i));
      MUST(at.is_filled(got.data(), static_cast<unsigned char>(i), got.size()));
      must(got.release(at.on));
    }
    must(pool.close());
    MUST(write(way.theirs(), "", 1) == 1);
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST_P(Pool, TheReadersStreamWaitsForTheWritersAndNoHostDoes) {
  const sockets way;
  const baton was_received, was_seen;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam()), way.ours());
    at.shut_gate();
    send_filled(at, pool, 7);
    was_received.take();
    MUST(at.stream_query(at.on) == kNotReady);
    at.open_gate();
    was_seen.take();
    must(pool.close());
    return 0;
  });
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    std::vector<unsigned char> seen(5000);
    MUST(at.copy_out_async(seen.data(), got.data(), seen.size(), at.on) == 0);
    MUST(at.stream_query(at.on) == kNotReady);
    was_received.pass();
    MUST(at.stream_synchronize(at.on) == 0);
    MUST(seen == std::vector<unsigned char>(5000, 7));
    must(got.release(at.on));
    must(pool.close());
    was_seen.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST_P(Pool, TheWritersStreamWaitsForTheReadersBeforeItWritesAgain) {
  const sockets way;
  const baton was_overwritten, is_done;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    send_filled(at, pool, 1);
    // The pool has one buffer. The reader released it while its device still has work on it.
    gpu_loan again = must(pool.acquire(at.on, soon()));
    at.fill(again.data(), 2, 5000);
    MUST(at.stream_query(at.on) == kNotReady);
    was_overwritten.pass();
    MUST(at.stream_synchronize(at.on) == 0);
    must(pool.send(std::move(again), 5000, at.on, soon()));
    is_done.take();
    must(pool.close());
    return 0;
  });
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    at.shut_gate();
    std::vector<unsigned char> seen(5000);
    MUST(at.copy_out_async(seen.data(), got.data(), seen.size(), at.on) == 0);
    must(got.release(at.on));
    was_overwritten.take();
    at.open_gate();
    MUST(at.stream_synchronize(at.on) == 0);
    MUST(seen == std::vector<unsigned char>(5000, 1));
    gpu_message next = must(pool.receive(at.on, soon()));
    MUST(at.is_filled(next.data(), 2, 5000));
    next = gpu_message();
    must(pool.close());
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST_P(Pool, IsNotFreedWhileAReaderHasItOpenAndSaysWho) {
  const sockets way;
  const baton is_open, may_close, is_closed;
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    is_open.pass();
    may_close.take();
    // A message keeps the memory open when its pool is closed.
    must(pool.close());
    MUST(at.is_filled(got.data(), 3, 5000));
    must(got.release(at.on));
    is_closed.pass();
    return 0;
  });
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam()), way.ours());
    send_filled(at, pool, 3);
    is_open.take();
    const auto refused = pool.close();
    MUST(!refused && refused.error().code == errc::in_use);
    MUST(refused.error().pid == static_cast<std::uint32_t>(reader.pid()));
    MUST(refused.error().text.find("process " + std::to_string(reader.pid()) + " (") != std::string::npos);
    MUST(refused.error().text.find("alive") != std::string::npos);
    may_close.pass();
    is_closed.take();
    must(pool.close());
    return 0;
  });
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(reader.wait(), 0);
}

TEST_P(Pool, WhoComesWhileItIsBeingClosedIsRefused) {
  const sockets way, other_way;
  const baton is_open, was_refused;
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    is_open.pass();
    const auto late = receive_pool(other_way.theirs(), soon());
    MUST(!late && late.error().code == errc::queue && late.error().queue == ipc::errc::closed);
    must(pool.close());
    was_refused.pass();
    return 0;
  });
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam()), way.ours());
    is_open.take();
    MUST(pool.close().error().code == errc::in_use);
    must(send_pool(other_way.ours(), pool, soon()));
    was_refused.take();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST_P(Pool, IsOpenedOnceAProcessHoweverOftenItIsReceived) {
  const sockets way;
  const baton is_done;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam()), way.ours());
    must(send_pool(way.ours(), pool, soon()));
    send_filled(at, pool, 4);
    send_filled(at, pool, 5);
    is_done.take();
    must(pool.close());
    return 0;
  });
  child reader([&] {
    gpu at;
    gpu_pool first = must(receive_pool(way.theirs(), soon()));
    gpu_pool second = must(receive_pool(way.theirs(), soon()));
    gpu_message one = must(first.receive(at.on, soon()));
    gpu_message two = must(second.receive(at.on, soon()));
    MUST(at.is_filled(one.data(), 4, 5000));
    must(one.release(at.on));
    must(first.close());
    MUST(at.is_filled(two.data(), 5, 5000));
    must(two.release(at.on));
    must(second.close());
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST_P(Pool, InTheProcessThatMadeItIsUsedAsItIs) {
  const sockets way;
  child both([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam()), way.ours());
    gpu_pool again = must(receive_pool(way.theirs(), soon()));
    gpu_loan loan = must(pool.acquire(at.on, soon()));
    const device_address where = loan.data();
    at.fill(where, 6, 5000);
    must(pool.send(std::move(loan), 5000, at.on, soon()));
    MUST(!loan);
    gpu_message got = must(again.receive(at.on, soon()));
    MUST(got.data() == where);
    MUST(at.is_filled(got.data(), 6, 5000));
    must(got.release(at.on));
    const auto refused = pool.close();
    MUST(!refused && refused.error().text.find("this one, by another handle") != std::string::npos);
    must(again.close());
    must(pool.close());
    return 0;
  });
  EXPECT_EQ(both.wait(), 0);
}

TEST_P(Pool, ALoanThatIsNotSentGoesBackAndItsWorkIsWaitedFor) {
  const sockets way;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    at.shut_gate();
    {
      const gpu_loan unsent = must(pool.acquire(at.on, soon()));
      at.fill(unsent.data(), 8, 5000);
      MUST(pool.close().error().text.find("1 loans") != std::string::npos);
    }
    MUST(at.stream_query(at.on) == kNotReady);
    return 0;
  });
  EXPECT_EQ(writer.wait(), 0);
  child other([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    at.shut_gate();
    {
      const gpu_loan unsent = must(pool.acquire(at.on, soon()));
      at.fill(unsent.data(), 8, 5000);
    }
    // The loan is for another stream, which waits for the first one.
    const gpu_loan next = must(pool.acquire(at.aside, soon()));
    MUST(at.stream_query(at.aside) == kNotReady);
    const unsigned open = 1;
    cu_stream third = nullptr;
    MUST(at.stream_create(&third, 1) == 0);
    MUST(at.copy_in_async(at.gate, &open, sizeof open, third) == 0);
    MUST(at.stream_synchronize(at.aside) == 0);
    return 0;
  });
  EXPECT_EQ(other.wait(), 0);
}

TEST_P(Pool, ATimeoutSaysWhoHoldsWhat) {
  const sockets way;
  const baton is_held, was_told, is_done;
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    is_held.pass();
    was_told.take();
    must(got.release(at.on));
    must(pool.close());
    is_done.pass();
    return 0;
  });
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    send_filled(at, pool, 9);
    is_held.take();
    const auto none = pool.acquire(at.on, deadline::after(10ms));
    MUST(!none && none.error().queue == ipc::errc::timeout);
    MUST(none.error().text.find("1 HELD by pid " + std::to_string(reader.pid())) != std::string::npos);
    was_told.pass();
    is_done.take();
    return 0;
  });
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(reader.wait(), 0);
}

}  // namespace
}  // namespace forksight::ipc_cuda::test
