// Tests that a pool refuses uses that cannot work, and gives the reason, before it calls the driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "control_block.hpp"
#include "descriptor_passing.hpp"
#include "forksight/ipc/handover.hpp"
#include "refusals.hpp"
#include "support.hpp"

namespace forksight::ipc_cuda::test {
namespace {

using testing::HasSubstr;

TEST(Refusals, CreateFailsWithoutCuInitAndDoesNotCallIt) {
  child program([] {
    const auto none = gpu_pool::create(small(memory::vmm_fd));
    MUST(!none && none.error().code == errc::not_initialised && none.error().driver == 0);
    MUST(none.error().text.find("cuInit") != std::string::npos);
    const functions driver;
    int count = 0;
    MUST(driver.device_count(&count) == kNotInitialized);
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

TEST(Refusals, CallsInAForkedChildOfAProcessThatUsesCudaFail) {
  child program([] {
    gpu at;
    const sockets way;
    gpu_pool pool = make_pool(small(memory::vmm_fd), way.ours());
    gpu_pool reader = must(receive_pool(way.theirs(), soon()));
    send_filled(at, pool, 1);
    gpu_message got = must(reader.receive(at.on, soon()));
    gpu_loan loan = must(pool.acquire(at.on, soon()));
    const auto me = static_cast<std::uint32_t>(getpid());
    child forked([&] {
      const auto anew = gpu_pool::create(small(memory::vmm_fd));
      MUST(!anew && anew.error().code == errc::initialised_in_parent && anew.error().pid == me);
      const sockets other;
      MUST(send_pool(other.ours(), pool).error().code == errc::used_after_fork);
      MUST(pool.acquire(at.on).error().code == errc::used_after_fork);
      MUST(pool.send(std::move(loan), 1, at.on).error().code == errc::used_after_fork);
      MUST(reader.receive(at.on).error().code == errc::used_after_fork);
      MUST(pool.close().error().code == errc::used_after_fork);
      MUST(got.release(at.on).error().code == errc::used_after_fork);
      // In the child, the destructors of these objects have no effect, either.
      const gpu_loan no_loan = std::move(loan);
      const gpu_pool no_pool = std::move(pool), no_reader = std::move(reader);
      return 0;
    });
    MUST(forked.wait() == 0);
    // The child did not change the parent's pool, message and loan.
    MUST(at.is_filled(got.data(), 1, 5000));
    must(got.release(at.on));
    at.fill(loan.data(), 2, 5000);
    must(pool.send(std::move(loan), 5000, at.on, soon()));
    must(reader.close());
    must(pool.close());
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

TEST(Refusals, WslIsNamed) {
  detail::surroundings where{"Linux version 6.1.0 (gcc 12)", "", "", 1};
  EXPECT_FALSE(detail::refuse_platform(where));
  where.kernel = "Linux version 5.15.90.1-microsoft-standard-WSL2";
  EXPECT_EQ(detail::refuse_platform(where).value().code, errc::unsupported);
  EXPECT_THAT(detail::refuse_platform(where)->text, HasSubstr("WSL"));
}

TEST(Refusals, LegacyHandlesDoNotCrossPidNamespaces) {
  const detail::surroundings where{"Linux", "", "", 1};
  detail::facts about{};
  about.kind = memory::legacy;
  about.pid = 812;
  about.pid_namespace = 1;
  EXPECT_FALSE(detail::refuse_import(where, about));
  about.pid_namespace = 2;
  EXPECT_EQ(detail::refuse_import(where, about).value().code, errc::other_namespace);
  EXPECT_THAT(detail::refuse_import(where, about)->text, HasSubstr("process 812, which is in another pid namespace"));
  about.kind = memory::vmm_fd;
  EXPECT_FALSE(detail::refuse_import(where, about));
}

TEST(Refusals, UnsupportedKindsInvalidOptionsAndWrongRoles) {
  EXPECT_EQ(gpu_pool::create(small(memory::mempool)).error().code, errc::unsupported);
  EXPECT_EQ(gpu_pool::create(small(memory::vmm_fd, 0)).error().code, errc::bad_option);
  EXPECT_EQ(gpu_pool::create(small(memory::vmm_fd, 1025)).error().code, errc::bad_option);
  child program([] {
    gpu at;
    pool_options wanted = small(memory::vmm_fd);
    wanted.device = 99;
    MUST(gpu_pool::create(wanted).error().code == errc::no_device);
    const sockets way;
    gpu_pool pool = make_pool(small(memory::vmm_fd), way.ours());
    gpu_pool again = must(receive_pool(way.theirs(), soon()));
    MUST(pool.receive(at.on).error().queue == ipc::errc::role);
    MUST(again.acquire(at.on).error().queue == ipc::errc::role);
    gpu_loan loan = must(pool.acquire(at.on, soon()));
    MUST(pool.send(std::move(loan), 5001, at.on).error().queue == ipc::errc::too_large);
    MUST(loan.capacity() == 5000);
    MUST(pool.send(gpu_loan(), 1, at.on).error().code == errc::bad_option);
    must(pool.send(std::move(loan), 0, at.on, soon()));
    MUST(must(again.receive(at.on, soon())).size() == 0);
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
  gpu_pool empty;
  EXPECT_EQ(empty.acquire(nullptr).error().queue, ipc::errc::closed);
  EXPECT_TRUE(empty.close());
}

detail::facts sound_facts() {
  detail::facts about{};
  about.kind = memory::vmm_fd;
  about.buffers = 4;
  about.bytes = 1000;
  about.stride = 1024;
  about.total = 4096;
  return about;
}

TEST(ControlBlock, EveryFlippedByteIsFound) {
  auto made = detail::control_block::create(4);
  ASSERT_TRUE(made);
  made->publish(sound_facts());
  ASSERT_TRUE(detail::control_block::open(ipc::detail::descriptor(dup(made->fd()))));
  for (std::size_t at = 0; at < sizeof(detail::facts); ++at) {
    unsigned char byte = 0;
    ASSERT_EQ(pread(made->fd(), &byte, 1, static_cast<off_t>(at)), 1);
    const unsigned char flipped = byte ^ 0x10;
    ASSERT_EQ(pwrite(made->fd(), &flipped, 1, static_cast<off_t>(at)), 1);
    const auto opened = detail::control_block::open(ipc::detail::descriptor(dup(made->fd())));
    EXPECT_FALSE(opened) << at;
    ASSERT_EQ(pwrite(made->fd(), &byte, 1, static_cast<off_t>(at)), 1);
  }
  EXPECT_TRUE(detail::control_block::open(ipc::detail::descriptor(dup(made->fd()))));
}

TEST(ControlBlock, FactsThatContradictEachOtherAreRefused) {
  const auto is_taken = [](void (*change)(detail::facts&)) {
    auto made = detail::control_block::create(4);
    detail::facts about = sound_facts();
    change(about);
    made->publish(about);
    return detail::control_block::open(ipc::detail::descriptor(dup(made->fd()))).has_value();
  };
  EXPECT_TRUE(is_taken([](detail::facts&) {}));
  EXPECT_FALSE(is_taken([](detail::facts& about) { about.buffers = 5; }));
  EXPECT_FALSE(is_taken([](detail::facts& about) { about.buffers = 3; }));
  EXPECT_FALSE(is_taken([](detail::facts& about) { about.bytes = 1025; }));
  EXPECT_FALSE(is_taken([](detail::facts& about) { about.bytes = 0; }));
  EXPECT_FALSE(is_taken([](detail::facts& about) { about.offset = 1; }));
  EXPECT_FALSE(is_taken([](detail::facts& about) { about.stride = ~std::uint64_t{0} / 2; }));
  EXPECT_FALSE(is_taken([](detail::facts& about) { about.kind = memory::mempool; }));
}

// Every reader of a pool knows the pool's id. So a reader can send a control block (the file that describes a pool)
// with this id and with other facts.
TEST(Refusals, AForgedControlBlockWithTheIdOfAnOpenPoolIsRefused) {
  child program([] {
    const gpu at;
    const sockets way, forged_way;
    const gpu_pool pool = make_pool(small(memory::vmm_fd), way.ours());
    auto joined = ipc::receive_queue(way.theirs(), ipc::role::consumer, soon());
    MUST(static_cast<bool>(joined));
    constexpr ipc::detail::transfer_kind kPoolTransfer{0x6c706766, "GPU pool"};
    auto files = ipc::detail::receive_descriptors(way.theirs(), kPoolTransfer, soon());
    MUST(static_cast<bool>(files));
    auto original = detail::control_block::open(ipc::detail::descriptor(dup((*files)[0].get())));
    auto forged = detail::control_block::create(40);
    MUST(original && forged);
    detail::facts about = original->about();
    about.buffers = 40;
    about.total = 40 * about.stride + about.offset;
    forged->publish(about);
    auto sent = ipc::send_queue(forged_way.ours(), *joined, soon());
    MUST(static_cast<bool>(sent));
    const int fds[] = {forged->fd(), (*files)[1].get()};
    MUST(static_cast<bool>(ipc::detail::send_descriptors(forged_way.ours(), kPoolTransfer, {fds, 2}, soon())));
    const auto none = receive_pool(forged_way.theirs(), soon());
    MUST(!none && none.error().code == errc::untrusted);
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

TEST(ControlBlock, AnyOtherFileIsRefused) {
  const int file = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  auto unsealed = detail::control_block::open(ipc::detail::descriptor(dup(file)));
  EXPECT_EQ(unsealed.error().code, errc::untrusted);
  close(file);
  // Two queues are sent over the socket, and no pool. So receive_pool() must fail.
  const sockets way;
  auto made = ipc::queue::create({});
  ASSERT_TRUE(ipc::send_queue(way.ours(), *made));
  ASSERT_TRUE(ipc::send_queue(way.ours(), *made));
  EXPECT_THAT(receive_pool(way.theirs(), soon()).error().text, HasSubstr("something else than a GPU pool"));
}

}  // namespace
}  // namespace forksight::ipc_cuda::test
