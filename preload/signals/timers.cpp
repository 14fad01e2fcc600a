#include "signals/timers.hpp"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include <atomic>

#include "guest/kept_errno.hpp"
#include "guest/proc_lines.hpp"
#include "libc/libc_calls.hpp"
#include "record/function_touch.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_lost_timers = 0;

namespace {

constexpr std::uint32_t kMaxRecordedForks = 64;
constexpr std::uint32_t kMaxTouches = 16;
constexpr std::size_t kStackBytes = 16U << 10U;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr int kFirstOfLibc = 32;  // the signals 32 and 33 belong to libc, and no wait for a signal includes them
constexpr int kLastOfLibc = 33;

constexpr std::uint64_t bit_of(int number) { return std::uint64_t{1} << static_cast<unsigned>(number - 1); }

FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_armed = 0;     // signals of the timers that were armed at a fork
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_armed_at = 0;  // ref of that fork
FORKSIGHT_WRITTEN_AT_FORK constinit bool g_is_recorded = false;    // that fork was recorded and is in progress
constinit std::uint64_t g_lost_at = 0;                             // ref of the fork at which this process lost timers
// The process that lost the timers. A child whose fork the shim did not see inherits g_loser and the variables above,
// but has another pid.
constinit std::int32_t g_loser = 0;
constinit std::atomic<std::uint32_t> g_touches{0};
constinit std::uint32_t g_recorded_forks = 0;

std::uint64_t in_ns(std::int64_t seconds, std::int64_t nanoseconds) {
  return static_cast<std::uint64_t>(seconds) * kSecond + static_cast<std::uint64_t>(nanoseconds);
}

bool find_real(trace::TimerRecord& out) {
  itimerval now{};
  if (sys::call(SYS_getitimer, ITIMER_REAL, sys::word(&now)) != 0) return false;
  out = {0, trace::TimerKind::kReal, SIGALRM, in_ns(now.it_value.tv_sec, now.it_value.tv_usec * 1000),
         in_ns(now.it_interval.tv_sec, now.it_interval.tv_usec * 1000)};
  return out.remaining_ns != 0;
}

bool find_posix(std::uint64_t id, int number, trace::TimerRecord& out) {
  itimerspec now{};
  if (sys::call(SYS_timer_gettime, static_cast<long>(id), sys::word(&now)) != 0) return false;
  out = {0, trace::TimerKind::kPosix, number, in_ns(now.it_value.tv_sec, now.it_value.tv_nsec),
         in_ns(now.it_interval.tv_sec, now.it_interval.tv_nsec)};
  return out.remaining_ns != 0;
}

// True if the program has called timer_create(). The first call of its hook stores the address of the real function.
bool may_have_posix() { return g_real_calls[static_cast<std::uint32_t>(LibcCall::timer_create)] != nullptr; }

// Timers of timer_create() are in /proc/self/timers, four lines each: "ID: 0", "signal: 14/0000...", "notify:
// signal/pid.1", "ClockID: 0".
template <class Tell>
__attribute__((noinline)) void for_each_posix(Tell tell) {
  std::uint64_t id = 0;
  int number = 0;
  for_each_line("/proc/self/timers", [&](const char* line) {
    if (const char* text = after(line, "ID: ")) id = read_number(text);
    if (const char* text = after(line, "signal: ")) number = static_cast<int>(read_number(text));
    trace::TimerRecord timer{};
    const bool is_signal = after(line, "notify: signal/") != nullptr && number > 0 && number <= 64 &&
                           (number < kFirstOfLibc || number > kLastOfLibc);
    if (is_signal && find_posix(id, number, timer)) tell(timer);
    return true;
  });
}

template <class Tell>
void for_each_armed(Tell tell) {
  trace::TimerRecord real{};
  if (find_real(real)) tell(real);
  if (may_have_posix()) for_each_posix(tell);
}

std::uint64_t armed_signals() {
  std::uint64_t signals = 0;
  for_each_armed([&](const trace::TimerRecord& timer) { signals |= bit_of(timer.number); });
  return signals;
}

}  // namespace

// Only the first forks of a process are recorded, because a process may fork for ever.
bool at_fork::Timers::tells() { return g_recorded_forks < kMaxRecordedForks && armed_signals() != 0; }

void at_fork::Timers::records(const Fork& fork_now) {
  const std::uint64_t fork = fork_now.record;
  if (FORKSIGHT_UNLIKELY(g_armed != 0)) g_armed = 0;
  if (fork == 0 || g_recorded_forks >= kMaxRecordedForks) return;
  for_each_armed([&](trace::TimerRecord timer) {
    timer.fork = fork;
    if (append(trace::RecordType::kTimer, timer) != 0) g_armed |= bit_of(timer.number);
  });
  if (g_armed == 0) return;
  ++g_recorded_forks;
  g_armed_at = fork;
  g_is_recorded = true;
}

void at_fork::Timers::continues(const Fork&) {
  if (FORKSIGHT_UNLIKELY(g_is_recorded)) g_is_recorded = false;
}

void at_fork::Timers::starts_any(std::uint64_t fork) {
  if (FORKSIGHT_UNLIKELY(g_lost_timers != 0)) g_lost_timers = 0;
  if (FORKSIGHT_LIKELY(!g_is_recorded)) return;
  g_is_recorded = false;
  if (fork == 0 || fork != g_armed_at) return;
  g_lost_timers = g_armed;
  g_lost_at = fork;
  g_loser = sys::getpid();
  g_touches.store(0, std::memory_order_relaxed);
}

std::uint64_t begin_timer_wait(std::uint64_t signals, const Site& site) {
  const KeptErrno kept;
  if (signals == 0 || (signals & ~g_lost_timers) != 0 || g_loser != sys::getpid()) return 0;
  if ((armed_signals() & signals) != 0 || g_touches.load(std::memory_order_relaxed) >= kMaxTouches) return 0;
  g_touches.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t stack = append_stack(site, own_slot(), kStackBytes, false, Importance::kFinding);
  return append(trace::RecordType::kTouch,
                trace::TouchRecord{g_lost_at, trace::TouchKind::kTimerWait, trace::TouchAction::kNone, 0, 0, signals,
                                   stack, 0, 0, 0, 0},
                Importance::kFinding);
}

void end_timer_wait(std::uint64_t touch, std::uint64_t signals, bool got_signal) {
  if (touch == 0) return;
  const KeptErrno kept;
  if (got_signal) g_lost_timers &= ~signals;
  end_function_touch(touch, 0);
}

}  // namespace forksight
