// Streams, events and copies of the test driver. A stream is a list of steps. A thread of the driver takes them in
// order, and so does a call that waits for the stream. A step that cannot be taken yet holds up its stream.
#include <sys/mman.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <set>
#include <thread>
#include <vector>

#include "test_driver.hpp"

struct CUstream_st {
  CUctx_st* context = nullptr;
  std::deque<std::function<bool()>> steps;
};

namespace forksight::test_driver {
namespace {

constexpr std::uint32_t kEventMagic = 0x65766e74;

struct shared_event {
  std::atomic<std::uint64_t> recorded, completed;
  std::atomic<std::uint32_t> is_destroyed;
};

struct event_handle {
  std::uint32_t magic;
  peer exporter;
  int fd;
};

std::set<cu_stream>& g_streams = *new std::set<cu_stream>;
CUstream_st& g_default = *new CUstream_st;
std::condition_variable& g_more = *new std::condition_variable;
bool g_has_thread = false;

bool take_steps(CUstream_st& of) {
  bool took = false;
  while (!of.steps.empty() && of.steps.front()()) {
    of.steps.pop_front();
    took = true;
  }
  return took;
}

bool has_steps() {
  for (cu_stream const one : g_streams) {
    if (!one->steps.empty()) return true;
  }
  return false;
}

// The thread that is the device. It takes the steps that can be taken, and tries again after a moment, because no
// notification comes when another process completes an event.
[[noreturn]] void run_device() {
  std::unique_lock held(g_lock);
  for (;;) {
    g_more.wait(held, has_steps);
    for (cu_stream const one : g_streams) take_steps(*one);
    if (!has_steps()) continue;
    held.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    held.lock();
  }
}

cu_stream named(cu_stream stream) { return stream != nullptr ? stream : &g_default; }

int add(cu_stream stream, std::function<bool()> step) {
  cu_stream const on = named(stream);
  g_streams.insert(&g_default);
  if (!g_streams.contains(on)) return kInvalidHandle;
  on->steps.push_back(std::move(step));
  if (!g_has_thread) {
    g_has_thread = true;
    std::thread(run_device).detach();
  }
  take_steps(*on);
  if (!on->steps.empty()) g_more.notify_one();
  return kSuccess;
}

template <class Done>
void wait_until(Done done) {
  for (;;) {
    {
      const std::lock_guard held(g_lock);
      for (cu_stream const one : g_streams) take_steps(*one);
      if (done()) return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace
}  // namespace forksight::test_driver

struct CUevent_st {
  forksight::test_driver::shared_event* page = nullptr;
  int fd = -1;
  bool is_interprocess = false, is_imported = false;
  forksight::test_driver::peer exporter{};
};

namespace forksight::test_driver {
namespace {

bool map_event(CUevent_st& of) {
  void* const page = mmap(nullptr, sizeof(shared_event), PROT_READ | PROT_WRITE, MAP_SHARED, of.fd, 0);
  if (page == MAP_FAILED) return false;
  of.page = static_cast<shared_event*>(page);
  return true;
}

void check_life(const CUevent_st& of) {
  if (!of.is_imported) return;
  if (!of.exporter.is_alive())
    misuse("an event of process " + std::to_string(of.exporter.pid) + " is used after its end");
  if (of.page->is_destroyed != 0) {
    misuse("an event is used after process " + std::to_string(of.exporter.pid) + " has destroyed it");
  }
}

}  // namespace

int cuStreamCreate(cu_stream* stream, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(stream != nullptr && flags <= 1, kInvalidValue);
  const std::lock_guard held(g_lock);
  *stream = new CUstream_st{current(), {}};
  g_streams.insert(*stream);
  return kSuccess;
}

int cuStreamSynchronize(cu_stream stream) {
  REQUIRE_CONTEXT();
  wait_until([=] { return named(stream)->steps.empty(); });
  return kSuccess;
}

int cuStreamDestroy_v2(cu_stream stream) {
  REQUIRE_CONTEXT();
  REQUIRE(stream != nullptr, kInvalidHandle);
  wait_until([=] { return stream->steps.empty(); });
  const std::lock_guard held(g_lock);
  g_streams.erase(stream);
  delete stream;
  return kSuccess;
}

int cuStreamQuery(cu_stream stream) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  take_steps(*named(stream));
  return named(stream)->steps.empty() ? kSuccess : kNotReady;
}

int cuCtxSynchronize() {
  REQUIRE_CONTEXT();
  wait_until([] { return !has_steps(); });
  return kSuccess;
}

int cuStreamWaitValue32_v2(cu_stream stream, cu_address at, unsigned value, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(flags == 0, kNotSupported);  // flags 0: wait until the value is at least `value`
  const std::lock_guard held(g_lock);
  char* memory = nullptr;
  if (const int answer = find_memory(at, sizeof value, memory); answer != kSuccess) return answer;
  return add(stream, [=] {
    return static_cast<std::int32_t>(std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory)).load() - value) >= 0;
  });
}

int cuEventCreate(cu_event* event, unsigned flags) {
  REQUIRE_CONTEXT();
  const bool is_interprocess = (flags & kEventInterprocess) != 0;
  REQUIRE(event != nullptr && (!is_interprocess || (flags & kEventDisableTiming) != 0), kInvalidValue);
  auto* const made = new CUevent_st;
  made->is_interprocess = is_interprocess;
  made->fd = make_file("forksight-test-driver-event", sizeof(shared_event));
  REQUIRE(made->fd >= 0 && map_event(*made), kOutOfMemory);
  *event = made;
  return kSuccess;
}

int cuEventDestroy_v2(cu_event event) {
  REQUIRE_CONTEXT();
  REQUIRE(event != nullptr, kInvalidHandle);
  const std::lock_guard held(g_lock);
  check_life(*event);
  if (!event->is_imported) event->page->is_destroyed = 1;
  // The page of the event stays mapped, because steps that wait for the event read it.
  close(event->fd);
  delete event;
  return kSuccess;
}

int cuEventRecord(cu_event event, cu_stream stream) {
  REQUIRE_CONTEXT();
  REQUIRE(event != nullptr, kInvalidHandle);
  const std::lock_guard held(g_lock);
  check_life(*event);
  shared_event* const page = event->page;
  const std::uint64_t number = page->recorded.fetch_add(1) + 1;
  return add(stream, [=] {
    std::uint64_t before = page->completed.load();
    while (before < number && !page->completed.compare_exchange_weak(before, number)) {
    }
    return true;
  });
}

int cuEventQuery(cu_event event) {
  REQUIRE_INIT();
  REQUIRE(event != nullptr, kInvalidHandle);
  const std::lock_guard held(g_lock);
  check_life(*event);
  return event->page->completed >= event->page->recorded ? kSuccess : kNotReady;
}

int cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(event != nullptr && flags == 0, kInvalidHandle);
  const std::lock_guard held(g_lock);
  check_life(*event);
  shared_event* const page = event->page;
  const std::uint64_t number = page->recorded.load();
  return add(stream, [=] { return page->completed.load() >= number; });
}

int cuIpcGetEventHandle(cu_ipc_handle* handle, cu_event event) {
  REQUIRE_CONTEXT();
  REQUIRE(handle != nullptr && event != nullptr && event->is_interprocess && !event->is_imported, kInvalidHandle);
  REQUIRE(!lacks(kAttributeIpcEvents), kNotSupported);
  const event_handle made{kEventMagic, peer::self(), event->fd};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &made, sizeof made);
  return kSuccess;
}

int cuIpcOpenEventHandle(cu_event* event, cu_ipc_handle handle) {
  REQUIRE_CONTEXT();
  event_handle of{};
  std::memcpy(&of, &handle, sizeof of);
  REQUIRE(event != nullptr && of.magic == kEventMagic, kInvalidValue);
  REQUIRE(of.exporter.pid != static_cast<std::uint32_t>(getpid()), kInvalidContext);
  REQUIRE(of.exporter.is_alive(), kInvalidHandle);
  auto* const made = new CUevent_st;
  made->is_imported = true;
  made->exporter = of.exporter;
  made->fd = open_of_process(of.exporter.pid, of.fd);
  REQUIRE(made->fd >= 0 && map_event(*made), kInvalidHandle);
  *event = made;
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(cu_address to, const void* from, std::size_t bytes, cu_stream stream) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  char* memory = nullptr;
  if (const int answer = find_memory(to, bytes, memory); answer != kSuccess) return answer;
  const auto* const source = static_cast<const char*>(from);
  return add(stream, [memory, copy = std::vector<char>(source, source + bytes)] {
    std::memcpy(memory, copy.data(), copy.size());
    return true;
  });
}

int cuMemcpyDtoHAsync_v2(void* to, cu_address from, std::size_t bytes, cu_stream stream) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  char* memory = nullptr;
  if (const int answer = find_memory(from, bytes, memory); answer != kSuccess) return answer;
  return add(stream, [=] {
    std::memcpy(to, memory, bytes);
    return true;
  });
}

int cuMemsetD8Async(cu_address at, unsigned char value, std::size_t bytes, cu_stream stream) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  char* memory = nullptr;
  if (const int answer = find_memory(at, bytes, memory); answer != kSuccess) return answer;
  return add(stream, [=] {
    std::memset(memory, value, bytes);
    return true;
  });
}

// Both functions wait only for the default stream, as if all other streams had been made so that they ignore it.
int cuMemcpyHtoD_v2(cu_address to, const void* from, std::size_t bytes) {
  if (const int answer = cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr); answer != kSuccess) return answer;
  return cuStreamSynchronize(nullptr);
}
int cuMemcpyDtoH_v2(void* to, cu_address from, std::size_t bytes) {
  if (const int answer = cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr); answer != kSuccess) return answer;
  return cuStreamSynchronize(nullptr);
}

}  // namespace forksight::test_driver
