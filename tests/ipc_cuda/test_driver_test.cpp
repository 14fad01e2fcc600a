// Tests that the test driver follows its rules, and tests of errors that only the test driver can cause. These tests do
// not run with a real driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>

#include "../ipc/sandbox.hpp"
#include "support.hpp"

namespace forksight::ipc_cuda::test {
namespace {

constexpr int kAborted = 128 + SIGABRT;

// Handles that one process makes and another opens. They are in memory that both processes share.
struct shared {
  cu_ipc_handle memory;
  cu_address at;
};
shared& common() {
  void* const page = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::abort();
  return *static_cast<shared*>(page);
}

void no_core() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// Runs `exporter` in a first process and `importer` in a second one. Then the first process runs the function that
// `exporter` returned. Checks that the first process ends with the status `exporters_end`.
void between_two(const std::function<std::function<void(gpu&)>(gpu&, shared&)>& exporter,
                 const std::function<void(gpu&, shared&)>& importer, int exporters_end) {
  shared& both = common();
  const baton is_made, is_opened, may_end;
  child first([&] {
    no_core();
    gpu at;
    const auto rest = exporter(at, both);
    is_made.pass();
    is_opened.take();
    rest(at);
    return 0;
  });
  child second([&] {
    no_core();
    is_made.take();
    gpu at;
    importer(at, both);
    is_opened.pass();
    may_end.take();
    return 0;
  });
  EXPECT_EQ(first.wait(), exporters_end);
  may_end.pass();
  EXPECT_EQ(second.wait(), 0);
  munmap(&both, sizeof both);
}

std::function<void(gpu&)> export_memory(gpu& at, shared& to) {
  MUST(at.memory_alloc(&to.at, 4096) == 0);
  at.fill(to.at, 1, 2048);
  at.fill(to.at + 2048, 2, 2048);
  MUST(at.stream_synchronize(at.on) == 0);
  // The address is in the middle of an allocation. Nevertheless, the handle is for the whole allocation.
  MUST(at.ipc_memory_handle(&to.memory, to.at + 2048) == 0);
  cu_address opened = 0;
  MUST(at.ipc_memory_open(&opened, to.memory, kLazyPeerAccess) == kInvalidContext);
  return [](gpu&) {};
}

TEST(TestDriver, AHandleOpensTheWholeAllocationAndOnlyOnce) {
  between_two(
      export_memory,
      [](gpu& at, shared& from) {
        cu_address opened = 0, again = 0;
        MUST(at.ipc_memory_open(&opened, from.memory, kLazyPeerAccess) == 0);
        MUST(at.is_filled(opened, 1, 2048) && at.is_filled(opened + 2048, 2, 2048));
        MUST(at.ipc_memory_open(&again, from.memory, kLazyPeerAccess) == kAlreadyMapped);
        MUST(at.ipc_memory_close(opened) == 0);
        MUST(at.ipc_memory_close(opened) == kInvalidValue);
        MUST(at.ipc_memory_open(&again, from.memory, kLazyPeerAccess) == 0);
        MUST(at.ipc_memory_close(again) == 0);
      },
      0);
}

TEST(TestDriver, FreeingMemoryThatAnotherProcessHasOpenEndsTheProgram) {
  between_two(
      [](gpu& at, shared& to) -> std::function<void(gpu&)> {
        (void)export_memory(at, to);
        return [&to](gpu& later) { MUST(later.memory_free(to.at) == 0); };
      },
      [](gpu& at, shared& from) {
        cu_address opened = 0;
        MUST(at.ipc_memory_open(&opened, from.memory, kLazyPeerAccess) == 0);
      },
      kAborted);
}

TEST(TestDriver, UsingTheLegacyMemoryOfADeadProcessEndsTheProgram) {
  shared& both = common();
  const baton is_made, is_opened, was_killed;
  child first([&]() -> int {
    gpu at;
    (void)export_memory(at, both);
    is_made.pass();
    for (;;) pause();
  });
  child second([&] {
    no_core();
    is_made.take();
    gpu at;
    cu_address opened = 0;
    MUST(at.ipc_memory_open(&opened, both.memory, kLazyPeerAccess) == 0);
    is_opened.pass();
    was_killed.take();
    return at.is_filled(opened, 1, 2048) ? 0 : 1;
  });
  is_opened.take();
  EXPECT_EQ(first.kill_and_wait(), 128 + SIGKILL);
  was_killed.pass();
  EXPECT_EQ(second.wait(), kAborted);
  munmap(&both, sizeof both);
}

TEST(TestDriver, NothingWorksWithoutAContextOrInAForkedChild) {
  child program([] {
    gpu at;
    MUST(at.context_set(nullptr) == 0);
    cu_address memory = 0;
    cu_event event = nullptr;
    MUST(at.memory_alloc(&memory, 1) == kInvalidContext);
    MUST(at.event_create(&event, kEventDisableTiming) == kInvalidContext);
    child forked([&] {
      int count = 0;
      MUST(at.init(0) == kNotInitialized);
      MUST(at.device_count(&count) == kNotInitialized);
      MUST(at.memory_alloc(&memory, 1) == kNotInitialized);
      return 0;
    });
    return forked.wait();
  });
  EXPECT_EQ(program.wait(), 0);
}

// Memory that is not exportable. It is mapped, but the program has no access to it.
struct mapped_memory {
  explicit mapped_memory(const gpu& at) {
    cu_allocation of{};
    of.type = kAllocationPinned;
    of.location = {kLocationDevice, at.device};
    MUST(at.granularity(&unit, &of, 0) == 0);
    MUST(at.vmm_create(&handle, unit / 2, &of, 0) == kInvalidValue);
    MUST(at.vmm_create(&handle, unit, &of, 0) == 0);
    MUST(at.vmm_reserve(&where, unit, 0, 0, 0) == 0);
    MUST(at.vmm_map(where, unit, 0, handle, 0) == 0);
  }
  std::size_t unit = 0;
  cu_allocation_handle handle = 0;
  cu_address where = 0;
};

TEST(TestDriver, MemoryWithoutAccessIsNotRead) {
  child program([] {
    const gpu at;
    const mapped_memory memory(at);
    int fd = -1;
    MUST(at.vmm_export(&fd, memory.handle, kHandlePosixFd, 0) == kInvalidValue);
    char byte = 0;
    MUST(at.copy_out(&byte, memory.where, 1) == kInvalidValue);
    MUST(at.vmm_unreserve(memory.where, memory.unit) == kInvalidValue);
    MUST(at.vmm_unmap(memory.where, memory.unit) == 0);
    MUST(at.vmm_unreserve(memory.where, memory.unit) == 0);
    MUST(at.vmm_release(memory.handle) == 0);
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

TEST(TestDriverRefusals, AnAttributeThatTheDeviceLacksIsNamed) {
  struct lack {
    const char* attribute;
    memory kind;
    const char* says;
  };
  const lack lacks[] = {{"103", memory::vmm_fd, "(attribute 103): use memory::legacy"},
                        {"102", memory::vmm_fd, "(attribute 102): use memory::legacy"},
                        {"10", memory::legacy, "(pointer attribute 10): use memory::vmm_fd"}};
  for (const lack& one : lacks) {
    child program([&] {
      setenv("FORKSIGHT_TEST_DRIVER_LACKS", one.attribute, 1);
      const gpu at;
      const auto none = gpu_pool::create(small(one.kind));
      MUST(!none && none.error().code == errc::unsupported && none.error().driver == 0);
      MUST(none.error().text.find(one.says) != std::string::npos);
      return 0;
    });
    EXPECT_EQ(program.wait(), 0) << one.attribute;
  }
  child program([] {
    setenv("FORKSIGHT_TEST_DRIVER_LACKS", "102,103", 1);
    const gpu at;
    must(must(gpu_pool::create(small(memory::legacy))).close());
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

TEST(TestDriverRefusals, MpsIsNamed) {
  struct row {
    const char* attribute;  // the value of the attribute for MPS; null: the driver is too old to know the attribute
    const char* folder;
    bool is_refused;
  };
  const row rows[] = {{"1", nullptr, true},
                      {"0", nullptr, false},
                      {"0", "/tmp/nvidia-mps", false},
                      {nullptr, "/tmp/nvidia-mps", true},
                      {nullptr, nullptr, false}};
  for (const row& one : rows) {
    child program([&] {
      if (one.attribute != nullptr) setenv("FORKSIGHT_TEST_DRIVER_MPS", one.attribute, 1);
      if (one.folder != nullptr) setenv("CUDA_MPS_PIPE_DIRECTORY", one.folder, 1);
      const gpu at;
      const auto made = gpu_pool::create(small(memory::vmm_fd));
      MUST(static_cast<bool>(made) != one.is_refused);
      if (one.is_refused) {
        MUST(made.error().code == errc::unsupported);
        MUST(made.error().text.find("client of MPS") != std::string::npos);
      }
      return 0;
    });
    EXPECT_EQ(program.wait(), 0) << (one.attribute != nullptr ? one.attribute : "old driver");
  }
}

// The driver does not know the attribute for MPS. The control pipe of an MPS daemon is in the default folder.
TEST(TestDriverRefusals, MpsInItsDefaultFolderIsNamed) {
  child program([] {
    const functions loaded;  // loads the driver now, because the mount over /tmp may hide its file
    if (!ipc::test::enter_mount_namespace() || !ipc::test::mount_memory("/tmp", "")) return 1;
    MUST(mkdir("/tmp/nvidia-mps", 0700) == 0 && mkfifo("/tmp/nvidia-mps/control", 0600) == 0);
    const gpu at;
    MUST(gpu_pool::create(small(memory::vmm_fd)).error().text.find("/tmp/nvidia-mps") != std::string::npos);
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

TEST(TestDriverRefusals, AnErrorOfTheDriverInReceiveLosesNoMessage) {
  for (const ipc::on_death after : {ipc::on_death::drop, ipc::on_death::redeliver}) {
    const sockets way;
    const baton is_done;
    child writer([&] {
      gpu at;
      pool_options wanted = small(memory::vmm_fd);
      wanted.after_death = after;
      gpu_pool pool = make_pool(wanted, way.ours());
      send_filled(at, pool, 1);
      send_filled(at, pool, 2);
      is_done.take();
      return 0;
    });
    child reader([&] {
      gpu at;
      gpu_pool pool = must(receive_pool(way.theirs(), soon()));
      setenv("FORKSIGHT_TEST_DRIVER_FAILS", "cuStreamWaitValue32", 1);
      MUST(pool.receive(at.on, soon()).error().code == errc::driver);
      unsetenv("FORKSIGHT_TEST_DRIVER_FAILS");
      for (const unsigned char value : {static_cast<unsigned char>(1), static_cast<unsigned char>(2)}) {
        gpu_message got = must(pool.receive(at.on, soon()));
        MUST(got.deliveries() == 1 && at.is_filled(got.data(), value, 5000));
        must(got.release(at.on));
      }
      is_done.pass();
      return 0;
    });
    EXPECT_EQ(reader.wait(), 0);
    EXPECT_EQ(writer.wait(), 0);
  }
}

// The first reader is killed in release(), at its call of cuEventRecord(). By then, its stream has written into the
// control block (the file that describes the pool) that the work is done. The message goes to a second reader. The
// writer's stream must wait for the work of the second reader.
TEST(TestDriverDeath, InReleaseDoesNotHideTheWorkOfTheNextReader) {
  const sockets way, second_way;
  const baton is_released, was_seen, is_done;
  child writer([&] {
    gpu at;
    pool_options wanted = small(memory::vmm_fd, 1);
    wanted.after_death = ipc::on_death::redeliver;
    gpu_pool pool = make_pool(wanted, way.ours());
    must(send_pool(second_way.ours(), pool, soon()));
    send_filled(at, pool, 3);
    is_released.take();
    gpu_loan again = must(pool.acquire(at.on, soon()));
    at.fill(again.data(), 9, 5000);
    MUST(at.stream_query(at.on) == kNotReady);
    was_seen.pass();
    is_done.take();
    return 0;
  });
  child victim([&]() -> int {
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    setenv("FORKSIGHT_TEST_DRIVER_KILLS", "cuEventRecord", 1);
    (void)got.release(at.on);
    return 1;
  });
  EXPECT_EQ(victim.wait(), 128 + SIGKILL);
  child survivor([&] {
    gpu at;
    gpu_pool pool = must(receive_pool(second_way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    MUST(got.deliveries() == 2);
    at.shut_gate();
    at.copy_later(got.data(), 5000);
    must(got.release(at.on));
    is_released.pass();
    was_seen.take();
    at.open_gate();
    MUST(at.stream_synchronize(at.on) == 0 && at.has_copied(3, 5000));
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(survivor.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

TEST(TestDriverRefusals, AStreamOfAnotherDeviceIsRefused) {
  child program([] {
    gpu at(0);
    const sockets way;
    gpu_pool pool = make_pool(small(memory::vmm_fd), way.ours());
    gpu_pool reader = must(receive_pool(way.theirs(), soon()));
    send_filled(at, pool, 1);
    gpu other(1);
    const auto none = reader.receive(other.on, soon());
    MUST(!none && none.error().code == errc::bad_option);
    MUST(none.error().text.find("primary context of device 0") != std::string::npos);
    MUST(pool.acquire(other.on, soon()).error().code == errc::bad_option);
    MUST(at.context_set(at.context) == 0);
    gpu_message got = must(reader.receive(at.on, soon()));
    MUST(at.is_filled(got.data(), 1, 5000));
    must(got.release(at.on));
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

TEST(TestDriver, UnmappingMemoryDuringWorkOnItEndsTheProgram) {
  child program([]() -> int {
    no_core();
    gpu at;
    const mapped_memory memory(at);
    const cu_access access{{kLocationDevice, at.device}, kAccessReadWrite};
    MUST(at.vmm_access(memory.where, memory.unit, &access, 1) == 0);
    at.shut_gate();
    at.fill(memory.where, 1, 100);
    return at.vmm_unmap(memory.where, memory.unit);
  });
  EXPECT_EQ(program.wait(), kAborted);
}

TEST(TestDriver, AForbiddenCallInvalidatesACapture) {
  child program([] {
    gpu at;
    cu_event event = nullptr;
    void* graph = nullptr;
    MUST(at.event_create(&event, kEventDisableTiming) == 0);
    MUST(at.capture_begin(at.on, 0) == 0);
    MUST(at.event_query(event) == kCaptureUnsupported);
    MUST(at.capture_end(at.on, &graph) == kCaptureInvalidated);
    MUST(at.capture_begin(at.on, 0) == 0);
    int mode = kCaptureRelaxed;
    MUST(at.capture_mode(&mode) == 0 && mode == 0);
    MUST(at.event_query(event) == 0);
    MUST(at.event_record(event, at.on) == kCaptureUnsupported);
    MUST(at.capture_end(at.on, &graph) == 0);
    MUST(at.capture_begin(at.on, 0) == 0);
    MUST(at.stream_wait_event(at.on, event, 0) == kCaptureUnsupported);
    MUST(at.capture_end(at.on, &graph) == kCaptureInvalidated);
    return 0;
  });
  EXPECT_EQ(program.wait(), 0);
}

class TestDriverDevices : public testing::TestWithParam<memory> {};
INSTANTIATE_TEST_SUITE_P(Kinds, TestDriverDevices, testing::Values(memory::vmm_fd, memory::legacy),
                         [](const auto& of) { return of.param == memory::legacy ? "legacy" : "vmm_fd"; });

TEST_P(TestDriverDevices, TheReaderFindsTheDeviceByItsUuid) {
  const sockets way, other_way;
  const baton is_done;
  child writer([&] {
    gpu at(1);
    pool_options wanted = small(GetParam());
    wanted.device = 1;
    gpu_pool pool = make_pool(wanted, way.ours());
    must(send_pool(other_way.ours(), pool, soon()));
    send_filled(at, pool, 1);
    is_done.take();
    is_done.take();
    must(pool.close());
    return 0;
  });
  child reader([&] {
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    gpu at;
    gpu_pool pool = must(receive_pool(way.theirs(), soon()));
    gpu_message got = must(pool.receive(at.on, soon()));
    MUST(at.is_filled(got.data(), 1, 5000));
    must(got.release(at.on));
    must(pool.close());
    is_done.pass();
    return 0;
  });
  child without_device([&] {
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    const gpu at;
    const auto none = receive_pool(other_way.theirs(), soon());
    MUST(!none && none.error().code == errc::no_device);
    MUST(none.error().text.find("GPU-5f5f5f5f-5f5f-5f5f-5f5f-5f5f5f5f5f01") != std::string::npos);
    MUST(none.error().text.find("CUDA_VISIBLE_DEVICES is 0") != std::string::npos);
    is_done.pass();
    return 0;
  });
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(without_device.wait(), 0);
  EXPECT_EQ(writer.wait(), 0);
}

}  // namespace
}  // namespace forksight::ipc_cuda::test
