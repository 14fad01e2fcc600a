// Tests of processes that share a pool. No process is killed in these tests.
#include <gtest/gtest.h>

#include <thread>

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
    // The reader sends a byte when it has closed the pool.
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

TEST_P(Pool, TheReadersStreamWaitsForTheWritersStreamAndReceiveDoesNot) {
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
    at.copy_later(got.data(), 5000);
    MUST(at.stream_query(at.on) == kNotReady);
    was_received.pass();
    MUST(at.stream_synchronize(at.on) == 0);
    MUST(at.has_copied(7, 5000));
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
    // The pool has one buffer. The reader has released the buffer, although the reader's device still has work on it.
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
    at.copy_later(got.data(), 5000);
    must(got.release(at.on));
    was_overwritten.take();
    at.open_gate();
    MUST(at.stream_synchronize(at.on) == 0);
    MUST(at.has_copied(1, 5000));
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

TEST_P(Pool, CloseFailsWhileAReaderHasItOpenAndNamesTheReader) {
  const sockets way;
  const baton is_open, may_close, is_closed;
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    is_open.pass();
    may_close.take();
    // The pool is closed while a message exists. The message keeps the memory open.
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

TEST_P(Pool, AProcessThatReceivesAClosedPoolIsRefused) {
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

TEST_P(Pool, CanBeReceivedTwiceByOneProcess) {
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

TEST_P(Pool, InTheProcessThatMadeItIsNotMappedAgain) {
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

TEST_P(Pool, TheNextUserOfAnUnsentLoanWaitsForItsWork) {
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
    // Without this call the program would hang, because the destructor of the pool waits for the work on its memory.
    at.open_gate();
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
    // The buffer is now lent for another stream. That stream waits for the work of the first one.
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

// Starts a writer that sends one message, and closes the pool when the reader has passed `is_done`.
child write_one(memory kind, unsigned char value, const sockets& way, const baton& is_done) {
  return child([&way, &is_done, kind, value] {
    gpu at;
    gpu_pool pool = make_pool(small(kind), way.ours());
    send_filled(at, pool, value);
    is_done.take();
    must(pool.close());
    return 0;
  });
}

TEST_P(Pool, CloseWaitsForTheWorkOfItsOwnProcess) {
  const sockets way;
  const baton is_done;
  child writer = write_one(GetParam(), 5, way, is_done);
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    at.shut_gate();
    at.copy_later(got.data(), 5000);
    must(got.release(at.on));
    std::thread opener([&] {
      MUST(at.context_set(at.context) == 0);
      std::this_thread::sleep_for(50ms);
      at.open_gate();
    });
    must(pool.close());
    MUST(at.has_copied(5, 5000));
    opener.join();
    MUST(at.stream_synchronize(at.on) == 0);
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

// The message is received for one stream and released on another. The first stream still waits for the writer.
TEST_P(Pool, CloseWaitsForTheStreamThatTheMessageWasReceivedFor) {
  const sockets way;
  const baton was_released, is_done;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam()), way.ours());
    at.shut_gate();
    send_filled(at, pool, 7);
    was_released.take();
    std::this_thread::sleep_for(50ms);
    at.open_gate();
    is_done.take();
    must(pool.close());
    return 0;
  });
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    must(got.release(at.aside));
    was_released.pass();
    must(pool.close());
    MUST(at.stream_synchronize(at.on) == 0 && at.stream_synchronize(at.aside) == 0);
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST(Capture, ClosingAPoolDuringACaptureUnmapsNothing) {
  const sockets way;
  const baton is_done, was_refused;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(memory::vmm_fd), way.ours());
    send_filled(at, pool, 6);
    is_done.take();
    const auto refused = pool.close();
    MUST(!refused && refused.error().code == errc::in_use);
    was_refused.pass();
    is_done.take();
    return 0;
  });
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    at.shut_gate();
    at.copy_later(got.data(), 5000);
    void* graph = nullptr;
    MUST(at.capture_begin(at.on, 0) == 0);
    got = gpu_message();
    must(pool.close());
    MUST(at.capture_end(at.on, &graph) == 0);
    is_done.pass();
    at.open_gate();
    MUST(at.stream_synchronize(at.on) == 0 && at.has_copied(6, 5000));
    was_refused.take();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  is_done.pass();
  EXPECT_EQ(writer.wait(), 0);
}

// Only memory::vmm_fd keeps readers from writing. For memory::legacy, the driver has no read-only mappings.
TEST(Readers, CannotWrite) {
  const sockets way;
  const baton is_done;
  child writer = write_one(memory::vmm_fd, 5, way, is_done);
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    MUST(at.set_async(got.data(), 6, 5000, at.on) == kInvalidValue);
    MUST(at.is_filled(got.data(), 5, 5000));
    must(got.release(at.on));
    must(pool.close());
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

// The captures have mode 0, CU_STREAM_CAPTURE_MODE_GLOBAL. This mode forbids the most calls.
TEST_P(Pool, ACapturedStreamIsRefusedAndItsCaptureGoesOn) {
  const sockets way;
  const baton is_captured, is_released, was_seen, is_done;
  child writer([&] {
    gpu at;
    gpu_pool pool = make_pool(small(GetParam(), 1), way.ours());
    void* graph = nullptr;
    MUST(at.capture_begin(at.on, 0) == 0);
    MUST(pool.acquire(at.on, soon()).error().code == errc::capturing);
    gpu_loan loan = must(pool.acquire(at.aside, soon()));
    MUST(pool.send(std::move(loan), 1, at.on, soon()).error().code == errc::capturing);
    MUST(loan.capacity() == 5000);
    MUST(at.capture_end(at.on, &graph) == 0);
    at.fill(loan.data(), 8, 5000);
    must(pool.send(std::move(loan), 5000, at.on, soon()));
    is_captured.pass();
    is_released.take();
    loan = must(pool.acquire(at.on, soon()));
    at.fill(loan.data(), 9, 5000);
    MUST(at.stream_query(at.on) == kNotReady);
    was_seen.pass();
    must(pool.send(std::move(loan), 5000, at.on, soon()));
    is_done.take();
    must(pool.close());
    return 0;
  });
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    is_captured.take();
    void* graph = nullptr;
    MUST(at.capture_begin(at.on, 0) == 0);
    MUST(pool.receive(at.on, soon()).error().code == errc::capturing);
    MUST(at.capture_end(at.on, &graph) == 0);
    gpu_message got = must(pool.receive(at.on, soon()));
    MUST(got.deliveries() == 1);
    at.shut_gate();
    at.copy_later(got.data(), 5000);
    MUST(at.capture_begin(at.on, 0) == 0);
    MUST(got.release(at.on).error().code == errc::capturing);
    MUST(got.size() == 5000);
    // The message is destroyed during the capture. The next call releases it, when the work on the stream is done.
    got = gpu_message();
    MUST(at.capture_end(at.on, &graph) == 0);
    MUST(pool.receive(at.on, deadline::now()).error().queue == ipc::errc::timeout);
    is_released.pass();
    was_seen.take();
    at.open_gate();
    MUST(at.stream_synchronize(at.on) == 0 && at.has_copied(8, 5000));
    got = must(pool.receive(at.on, soon()));
    MUST(at.is_filled(got.data(), 9, 5000));
    must(got.release(at.on));
    MUST(at.capture_begin(at.aside, 0) == 0);
    must(pool.close());
    MUST(at.capture_end(at.aside, &graph) == 0);
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

// A legacy handle gives the readers access to whole blocks of 2 MiB. So the pool allocates whole blocks.
TEST(Legacy, ThePoolUsesWholeBlocks) {
  child writer([] {
    gpu at;
    const sockets way;
    gpu_pool pool = make_pool(small(memory::legacy), way.ours());
    const gpu_loan loan = must(pool.acquire(at.on, soon()));
    cu_address base = 0;
    std::size_t bytes = 0;
    MUST(at.memory_range(&base, &bytes, loan.data()) == 0);
    MUST(bytes != 0 && bytes % (2u << 20) == 0);
    return 0;
  });
  EXPECT_EQ(writer.wait(), 0);
}

TEST(Existing, MemoryOfTheProgramIsSharedAndNotFreed) {
  const sockets way;
  const baton is_done;
  child writer([&] {
    gpu at;
    cu_address own = 0;
    MUST(at.memory_alloc(&own, 2u << 20) == 0);
    pool_options wanted = small(memory::legacy);
    wanted.existing = own + 4096;
    gpu_pool pool = make_pool(wanted, way.ours());
    gpu_loan loan = must(pool.acquire(at.on, soon()));
    MUST(loan.data() == own + 4096 + loan.index() * 5120ull);
    at.fill(loan.data(), 4, 5000);
    must(pool.send(std::move(loan), 5000, at.on, soon()));
    is_done.take();
    must(pool.close());
    MUST(at.is_filled(own + 4096, 4, 5000) || at.is_filled(own + 4096 + 5120, 4, 5000));
    MUST(at.memory_free(own) == 0);
    return 0;
  });
  child reader([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    MUST(at.is_filled(got.data(), 4, 5000));
    must(got.release(at.on));
    must(pool.close());
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST(Existing, MemoryThatCannotBeSharedIsRefusedWithTheReason) {
  child program([] {
    gpu at;
    cu_address own = 0;
    MUST(at.memory_alloc(&own, 8192) == 0);
    pool_options wanted = small(memory::legacy);
    wanted.existing = own;
    // The pool has two buffers of 5120 bytes, which do not fit into the allocation of 8192 bytes.
    MUST(gpu_pool::create(wanted).error().code == errc::bad_option);
    wanted.buffers = 1;
    wanted.kind = memory::vmm_fd;
    MUST(gpu_pool::create(wanted).error().text.find("memory::legacy only") != std::string::npos);
    wanted.kind = memory::legacy;
    wanted.existing = reinterpret_cast<cu_address>(&own);
    MUST(gpu_pool::create(wanted).error().code == errc::bad_option);
    // Memory of cuMemCreate() has no legacy handle. PyTorch's expandable segments are such memory, too.
    const sockets way;
    gpu_pool other = make_pool(small(memory::vmm_fd), way.ours());
    const gpu_loan loan = must(other.acquire(at.on, soon()));
    wanted.existing = loan.data();
    const auto none = gpu_pool::create(wanted);
    MUST(!none && none.error().code == errc::unsupported);
    MUST(none.error().text.find("expandable_segments") != std::string::npos);
    wanted.existing = own;
    must(must(gpu_pool::create(wanted)).close());
    MUST(at.memory_free(own) == 0);
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

}  // namespace
}  // namespace forksight::ipc_cuda::test
