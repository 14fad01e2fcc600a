#include "python/python.hpp"

#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>

#include <atomic>

#include "guest/clock.hpp"
#include "guest/kept_errno.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "loader/elf_view.hpp"
#include "locks/orphans.hpp"
#include "python/own_frames.hpp"
#include "python/python_signal.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// PyThreadState and PyInterpreterState of CPython. This file does not read their members.
struct ThreadState;
struct Interpreter;

struct Python {
  std::uint64_t bias;
  OwnPythonLayout own;  // used if the interpreter exports no dumper
  const char* (*dump_all)(int fd, Interpreter* interpreter, ThreadState* current);
  void (*dump_one)(int fd, ThreadState* state);
  // In the thread that holds the GIL, this returns the thread's own state. In other threads it returns null, or the
  // state of another thread.
  ThreadState* (*attached_state)();
  ThreadState* (*own_state)();
};

constinit Python g_python = {};
constinit std::atomic<bool> g_has_python{false};

constexpr std::size_t kMostBytes = 32U << 10U;
// A server forks from the same place again and again. The stacks are recorded at the first kForksRecordedEach forks,
// and after that at most once in kRestNs. A child that inherited orphans records the stacks itself if its parent did
// not.
constexpr std::uint32_t kForksRecordedEach = 16;
constexpr std::uint64_t kRestNs = 100'000'000;
// If a fork's record is beyond this part of the trace, its Python stacks are not recorded, to keep room for other
// records.
constexpr std::uint64_t kRoomBytes = trace::kMaxTraceBytes / 4;

// The following four variables are written only at recorded forks, by a thread that holds the GIL.
constinit std::uint32_t g_recorded_forks = 0;
constinit std::uint64_t g_last_ns = 0;
constinit std::uint64_t g_last_stacks = 0;  // ref of the kPythonStacks record of this process's last recorded fork
constinit std::uint64_t g_last_fork = 0;

template <class Function>
void look_up(const ElfView& view, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(view.find_function(name));
}

class Cancellation {
 public:
  Cancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Cancellation() { pthread_setcancelstate(before_, nullptr); }
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

 private:
  int before_ = 0;
};

// Which threads' stacks are recorded: those of all threads, or of the calling thread alone.
enum class Threads { kAll, kOne };

// The text of the interpreter's dumper, or the shim's own text in the same format.
//   The dumper writes to a descriptor: the shim gives it a non-blocking pipe, which holds 64 KiB. Text beyond that is
//   lost. With a file instead, the program could get SIGXFSZ at RLIMIT_FSIZE. Without two free descriptors there is no
//   text.
class DumpedText {
 public:
  DumpedText(Threads threads, ThreadState* own) {
    const KeptErrno kept;
    if (g_python.own.runtime != 0) {
      read(threads, own);
      return;
    }
    int ends[2];
    if (sys::call(SYS_pipe2, sys::word(ends), O_CLOEXEC | O_NONBLOCK) == 0) {
      // If the program has closed its standard streams, the pipe must not get their numbers.
      for (int& end : ends) end = move_up(end);
      if (ends[0] >= 0 && ends[1] >= 0) {
        const Cancellation off;  // the dumper calls write()
        // The thread's own stack comes first: if there is too much text, other stacks are cut off.
        if (own != nullptr) g_python.dump_one(ends[1], own);
        if (threads == Threads::kAll) g_python.dump_all(ends[1], nullptr, own);
        collect(ends[0]);
      }
      for (const int end : ends) sys::close(end);
    }
  }
  ~DumpedText() {
    if (text_ != nullptr) sys::unmap(text_, kMapped);
  }
  DumpedText(const DumpedText&) = delete;
  DumpedText& operator=(const DumpedText&) = delete;

  std::uint64_t append(trace::PythonMoment moment, std::uint64_t touch) const {
    if (bytes_ == 0) return 0;
    const auto importance = touch == 0 ? Importance::kFact : Importance::kFinding;
    Record record(trace::RecordType::kPythonStacks, sizeof(trace::PythonStacksRecord) + bytes_, importance);
    if (!record) return 0;
    *record.as<trace::PythonStacksRecord>() = {
        touch, reinterpret_cast<std::uint64_t>(__builtin_thread_pointer()), moment, bytes_, cut_, 0};
    memcpy(record.payload() + sizeof(trace::PythonStacksRecord), text_, bytes_);
    return record.commit();
  }

  // True if the record `stacks` was written by this thread, and has this text.
  bool is_that_of(std::uint64_t stacks) const {
    const auto* const record =
        find_record_with<trace::PythonStacksRecord>(stacks, trace::RecordType::kPythonStacks, bytes_);
    return record != nullptr && record->writer == reinterpret_cast<std::uint64_t>(__builtin_thread_pointer()) &&
           record->bytes == bytes_ && memcmp(record + 1, text_, bytes_) == 0;
  }

 private:
  static constexpr std::size_t kMapped = kMostBytes + OwnFrames::kScratchBytes;

  bool map_text() {
    text_ = static_cast<char*>(sys::map(kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
    return text_ != nullptr;
  }

  void read(Threads threads, ThreadState* own) {
    if (!map_text()) return;
    OwnFrames frames(g_python.own, text_, kMostBytes, text_ + kMostBytes);
    const auto state = reinterpret_cast<std::uint64_t>(own);
    if (own != nullptr) frames.add_one(state);
    if (threads == Threads::kAll) frames.add_others(state);
    bytes_ = frames.bytes();
    cut_ = frames.is_cut() ? 1 : 0;
  }

  static int move_up(int fd) {
    if (fd > 2) return fd;
    const long moved = sys::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
    sys::close(fd);
    return static_cast<int>(moved);
  }

  void collect(int fd) {
    int waiting = 0;
    sys::call(SYS_ioctl, fd, FIONREAD, sys::word(&waiting));
    if (waiting <= 0) return;
    if (!map_text()) return;
    while (bytes_ < kMostBytes) {
      const long got = sys::read(fd, text_ + bytes_, kMostBytes - bytes_);
      if (got <= 0) break;
      bytes_ += static_cast<std::uint32_t>(got);
    }
    cut_ = bytes_ == kMostBytes ? 1 : 0;
  }

  char* text_ = nullptr;
  std::uint32_t bytes_ = 0;
  std::uint32_t cut_ = 0;
};

// The PyThreadState of the calling thread if the thread holds the GIL; else null.
ThreadState* state_with_gil() {
  if (!g_has_python.load(std::memory_order_acquire)) return nullptr;
  ThreadState* const own = g_python.own_state();
  return own != nullptr && own == g_python.attached_state() ? own : nullptr;
}

void record_fork(std::uint64_t fork, ThreadState* own) {
  const DumpedText text(Threads::kAll, own);
  // If the last record of this process has the same stacks, it is used again. Otherwise the last record of any process
  // of the trace is used again, if that record has the same stacks.
  std::atomic<std::uint64_t>& of_all = last_python_stacks();
  const std::uint64_t others = of_all.load(std::memory_order_acquire);
  if (!text.is_that_of(g_last_stacks)) {
    g_last_stacks = text.is_that_of(others) ? others : text.append(trace::PythonMoment::kFork, 0);
  }
  if (g_last_stacks == 0) return;
  of_all.store(g_last_stacks, std::memory_order_release);
  append(trace::RecordType::kPythonAtFork, trace::PythonAtForkRecord{fork, g_last_stacks});
  g_last_fork = fork;
}

}  // namespace

void recognise_python(const Module& module) {
  if (g_has_python.load(std::memory_order_relaxed)) return;
  const ElfView view(module.bias, module.dynamic, module.is_permanent ? Trust::kStaysLoaded : Trust::kNone);
  Python python{};
  look_up(view, "_Py_DumpTracebackThreads", python.dump_all);
  look_up(view, "_Py_DumpTraceback", python.dump_one);
  if (python.dump_all == nullptr || python.dump_one == nullptr) {
    python.own = read_own_python_layout(view.find_variable("_PyRuntime"));
    if (python.own.runtime == 0) return;
  }
  look_up(view, "PyGILState_GetThisThreadState", python.own_state);
  look_up(view, "_PyThreadState_UncheckedGet", python.attached_state);
  if (python.attached_state == nullptr) look_up(view, "PyThreadState_GetUnchecked", python.attached_state);
  // Builds without the GIL export this function. The shim leaves such builds out, because their other threads run while
  // the calling thread reads.
  const bool is_free_threaded = view.find_function("_Py_MergeZeroLocalRefcount") != 0;
  if (python.own_state == nullptr || python.attached_state == nullptr) return;
  if (is_free_threaded) return;
  python.bias = module.bias;
  g_python = python;
  g_has_python.store(true, std::memory_order_release);
}

void forget_python(const Module& module) {
  if (g_has_python.load(std::memory_order_relaxed) && g_python.bias == module.bias) g_has_python.store(false);
}

// Records the stacks of all threads if the forking thread holds the GIL. After the first kForksRecordedEach forks,
// records them at most once in kRestNs.
void at_fork::Python::records(const Fork& fork_now) {
  const std::uint64_t fork = fork_now.record;
  ThreadState* const own = fork == 0 ? nullptr : state_with_gil();
  if (own == nullptr) return;
  answer_python_signal();
  if (fork > kRoomBytes) return;
  const std::uint64_t now = now_ns();
  if (g_recorded_forks >= kForksRecordedEach && now - g_last_ns < kRestNs) return;
  ++g_recorded_forks;
  g_last_ns = now;
  record_fork(fork, own);
}

// In a child that inherited orphans: if records() did not record the stacks before this fork, records them now, from
// the child's frozen copy of the memory.
void at_fork::Python::reads(const Fork& fork_now) {
  const std::uint64_t fork = fork_now.record;
  if (!locks_are_watched() || fork == 0 || fork > kRoomBytes || fork == g_last_fork) return;
  ThreadState* const own = state_with_gil();
  if (own != nullptr) record_fork(fork, own);
}

void record_python_at_touch(std::uint64_t touch) {
  if (touch == 0 || !g_has_python.load(std::memory_order_acquire)) return;
  // The calling thread's own frames do not change during this call, even if the thread does not hold the GIL.
  ThreadState* const own = g_python.own_state();
  if (own == nullptr) return;
  DumpedText(Threads::kOne, own).append(trace::PythonMoment::kTouch, touch);
}

void record_python_on_request() {
  if (!g_has_python.load(std::memory_order_acquire) || !trace_is_open()) return;
  ThreadState* const own = g_python.own_state();
  DumpedText(Threads::kAll, own).append(trace::PythonMoment::kRequest, 0);
}

}  // namespace forksight
