// Streams, events and copies of the test driver. A stream is a list of steps. A thread of the driver executes the steps
// in order. A call that waits for the stream also executes them. If a step cannot be executed yet, the later steps of
// its stream must wait.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "test_driver.hpp"

struct CUstream_st {
  CUctx_st* context = nullptr;
  std::deque<std::function<bool()>> steps;
  enum class capture { none, active, invalidated } state = capture::none;
  int mode = 0;  // the mode of the capture: CU_STREAM_CAPTURE_MODE_GLOBAL, THREAD_LOCAL, RELAXED
  std::thread::id captured_by;
};

namespace forksight::test_driver {
namespace {

constexpr int kGlobal = 0, kThreadLocal = 1;
thread_local int t_mode = kGlobal;

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

cu_stream named(cu_stream stream) { return stream != nullptr ? stream : &g_default; }
bool is_capturing(cu_stream stream) { return named(stream)->state != CUstream_st::capture::none; }

// The function of the thread that acts as the device. The thread executes the steps that can be executed. It tries the
// other steps again after 200 us. Another process may change the shared memory for which a step waits, and nothing
// notifies the thread of that.
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

int add(cu_stream stream, std::function<bool()> step) {
  cu_stream const on = named(stream);
  g_streams.insert(&g_default);
  if (!g_streams.contains(on)) return kInvalidHandle;
  if (on->state != CUstream_st::capture::none) return kSuccess;  // the step would join a graph that no test launches
  on->steps.push_back(std::move(step));
  if (!g_has_thread) {
    g_has_thread = true;
    std::thread(run_device).detach();
  }
  take_steps(*on);
  if (!on->steps.empty()) g_more.notify_one();
  return kSuccess;
}

}  // namespace

void wait_until(const std::function<bool()>& done) {
  for (;;) {
    {
      const std::lock_guard held(g_lock);
      for (cu_stream const one : g_streams) take_steps(*one);
      if (done()) return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace forksight::test_driver

struct CUevent_st {
  std::uint64_t recorded = 0;
  std::shared_ptr<std::uint64_t> completed = std::make_shared<std::uint64_t>(0);
};

namespace forksight::test_driver {
namespace {

// Ends the process if an event is used with a stream of another context. NVIDIA's driver crashes in this case.
void check_context(cu_stream stream) {
  if (stream != nullptr && stream->context != current()) misuse("an event is used with a stream of another context");
}

}  // namespace

bool ends_captures() {
  bool ended = false;
  for (cu_stream const one : g_streams) {
    if (one->state == CUstream_st::capture::none || one->mode == kCaptureRelaxed || t_mode == kCaptureRelaxed) continue;
    const bool is_mine = one->captured_by == std::this_thread::get_id();
    if (!is_mine && (one->mode != kGlobal || t_mode == kThreadLocal)) continue;
    one->state = CUstream_st::capture::invalidated;
    ended = true;
  }
  return ended;
}

int cuStreamBeginCapture_v2(cu_stream stream, int mode) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  REQUIRE(stream != nullptr && !is_capturing(stream) && mode >= kGlobal && mode <= kCaptureRelaxed, kInvalidValue);
  stream->state = CUstream_st::capture::active;
  stream->mode = mode;
  stream->captured_by = std::this_thread::get_id();
  return kSuccess;
}

int cuStreamEndCapture(cu_stream stream, void** graph) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  REQUIRE(stream != nullptr && is_capturing(stream) && graph != nullptr, kInvalidValue);
  *graph = nullptr;
  const bool is_sound = stream->state == CUstream_st::capture::active;
  stream->state = CUstream_st::capture::none;
  return is_sound ? kSuccess : kCaptureInvalidated;
}

int cuStreamIsCapturing(cu_stream stream, int* state) {
  REQUIRE_CONTEXT();
  REQUIRE(state != nullptr, kInvalidValue);
  const std::lock_guard held(g_lock);
  *state = static_cast<int>(named(stream)->state);
  return kSuccess;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  REQUIRE(mode != nullptr && *mode >= kGlobal && *mode <= kCaptureRelaxed, kInvalidValue);
  std::swap(*mode, t_mode);
  return kSuccess;
}

int cuStreamGetCtx(cu_stream stream, cu_context* context) {
  REQUIRE_CONTEXT();
  REQUIRE(context != nullptr, kInvalidValue);
  const std::lock_guard held(g_lock);
  *context = stream != nullptr ? stream->context : current();
  return kSuccess;
}

int cuStreamCreate(cu_stream* stream, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(stream != nullptr && flags <= 1, kInvalidValue);
  const std::lock_guard held(g_lock);
  *stream = new CUstream_st;
  (*stream)->context = current();
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

int cuStreamWaitValue32_v2(cu_stream stream, cu_address at, unsigned value, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(flags == kWaitUntilAtLeast, kNotSupported);
  REQUIRE(!fails("cuStreamWaitValue32"), kOutOfMemory);
  const std::lock_guard held(g_lock);
  used_memory memory;
  if (const int answer = find_memory(at, sizeof value, use::read, memory); answer != kSuccess) return answer;
  return add(stream, [=] {
    return static_cast<std::int32_t>(std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory.at)).load() - value) >= 0;
  });
}

int cuStreamWriteValue32_v2(cu_stream stream, cu_address at, unsigned value, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(flags == 0, kNotSupported);
  const std::lock_guard held(g_lock);
  used_memory memory;
  if (const int answer = find_memory(at, sizeof value, use::write, memory); answer != kSuccess) return answer;
  return add(stream, [=] {
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory.at)).store(value);
    return true;
  });
}

int cuEventCreate(cu_event* event, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(event != nullptr && flags == kEventDisableTiming, kInvalidValue);
  *event = new CUevent_st;
  return kSuccess;
}

int cuEventDestroy_v2(cu_event event) {
  REQUIRE_CONTEXT();
  REQUIRE(event != nullptr, kInvalidHandle);
  const std::lock_guard held(g_lock);
  delete event;
  return kSuccess;
}

int cuEventRecord(cu_event event, cu_stream stream) {
  REQUIRE_CONTEXT();
  may_kill("cuEventRecord");
  REQUIRE(event != nullptr, kInvalidHandle);
  const std::lock_guard held(g_lock);
  REQUIRE(!is_capturing(stream), kCaptureUnsupported);
  check_context(stream);
  return add(stream, [completed = event->completed, number = ++event->recorded] {
    *completed = std::max(*completed, number);
    return true;
  });
}

int cuEventQuery(cu_event event) {
  REQUIRE_INIT();
  REQUIRE(event != nullptr, kInvalidHandle);
  const std::lock_guard held(g_lock);
  REQUIRE(!ends_captures(), kCaptureUnsupported);
  for (cu_stream const one : g_streams) take_steps(*one);
  return *event->completed >= event->recorded ? kSuccess : kNotReady;
}

int cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags) {
  REQUIRE_CONTEXT();
  REQUIRE(event != nullptr && flags == 0, kInvalidHandle);
  const std::lock_guard held(g_lock);
  if (is_capturing(stream)) {
    named(stream)->state = CUstream_st::capture::invalidated;
    return kCaptureUnsupported;
  }
  check_context(stream);
  return add(stream, [completed = event->completed, number = event->recorded] { return *completed >= number; });
}

int cuMemcpyHtoDAsync_v2(cu_address to, const void* from, std::size_t bytes, cu_stream stream) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  used_memory memory;
  if (const int answer = find_memory(to, bytes, use::write, memory); answer != kSuccess) return answer;
  const auto* const source = static_cast<const char*>(from);
  return add(stream, [memory, copy = std::vector<char>(source, source + bytes)] {
    std::memcpy(memory.at, copy.data(), copy.size());
    return true;
  });
}

int cuMemcpyDtoHAsync_v2(void* to, cu_address from, std::size_t bytes, cu_stream stream) {
  REQUIRE_CONTEXT();
  {
    const std::lock_guard held(g_lock);
    used_memory memory;
    if (const int answer = find_memory(from, bytes, use::read, memory); answer != kSuccess) return answer;
    const int answer = add(stream, [=] {
      std::memcpy(to, memory.at, bytes);
      return true;
    });
    if (answer != kSuccess || is_pinned(to, bytes) || is_capturing(stream)) return answer;
  }
  // A copy into pageable memory is complete when the call returns.
  return cuStreamSynchronize(stream);
}

int cuMemsetD8Async(cu_address at, unsigned char value, std::size_t bytes, cu_stream stream) {
  REQUIRE_CONTEXT();
  const std::lock_guard held(g_lock);
  used_memory memory;
  if (const int answer = find_memory(at, bytes, use::write, memory); answer != kSuccess) return answer;
  return add(stream, [=] {
    std::memset(memory.at, value, bytes);
    return true;
  });
}

// Both functions wait only for the default stream. This is right if the program created all other streams with
// CU_STREAM_NON_BLOCKING, as the tests do.
int cuMemcpyHtoD_v2(cu_address to, const void* from, std::size_t bytes) {
  if (const int answer = cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr); answer != kSuccess) return answer;
  return cuStreamSynchronize(nullptr);
}
int cuMemcpyDtoH_v2(void* to, cu_address from, std::size_t bytes) {
  if (const int answer = cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr); answer != kSuccess) return answer;
  return cuStreamSynchronize(nullptr);
}

}  // namespace forksight::test_driver
