#include "watch/time_left.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <charconv>
#include <ctime>
#include <span>

#include "proc/process_memory.hpp"

namespace forksight::watch {
namespace {

constexpr std::uint64_t kMsOfSecond = 1000;
constexpr std::uint64_t kNsOfMs = 1'000'000;

std::optional<std::uint64_t> in_ms(std::int64_t seconds, std::int64_t parts, std::uint64_t parts_of_ms) {
  constexpr std::int64_t kMost = INT64_MAX / 4096;
  if (seconds < 0 || seconds > kMost || parts < 0) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * kMsOfSecond + static_cast<std::uint64_t>(parts) / parts_of_ms;
}

// A limit that the caller gave as a duration. Such a limit counts from the beginning of the call.
TimeLimit of_span(std::optional<std::uint64_t> span_ms, std::optional<std::uint64_t> slept_ms) {
  TimeLimit limit{true, {}};
  if (span_ms && slept_ms) limit.left_ms = *span_ms > *slept_ms ? *span_ms - *slept_ms : 0;
  return limit;
}

std::optional<std::uint64_t> read_time(const proc::ThreadSample& thread, std::uint64_t address) {
  timespec time{};
  if (!proc::ProcessMemory(thread.tid).read(address, std::as_writable_bytes(std::span(&time, 1)))) return std::nullopt;
  return in_ms(time.tv_sec, time.tv_nsec, kNsOfMs);
}

TimeLimit of_clock(const proc::ThreadSample& thread, std::uint64_t address, clockid_t clock) {
  TimeLimit limit{true, {}};
  timespec now{};
  const auto at = read_time(thread, address);
  if (!at || ::clock_gettime(clock, &now) != 0) return limit;
  const auto now_ms = in_ms(now.tv_sec, now.tv_nsec, kNsOfMs);
  if (now_ms) limit.left_ms = *at > *now_ms ? *at - *now_ms : 0;
  return limit;
}

TimeLimit of_futex(const proc::ThreadSample& thread, std::optional<std::uint64_t> slept_ms) {
  if (thread.call.args[3] == 0) return {};
  const std::uint64_t operation = static_cast<std::uint32_t>(thread.call.args[1]);
  const bool is_real = (operation & FUTEX_CLOCK_REALTIME) != 0;
  // The timeout of FUTEX_WAIT is a duration. The timeout of all other operations is a point in time of a clock. For
  // FUTEX_LOCK_PI that clock is always the time of day.
  const std::uint64_t command = operation & ~std::uint64_t{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
  if (command == FUTEX_WAIT) return of_span(read_time(thread, thread.call.args[3]), slept_ms);
  return of_clock(thread, thread.call.args[3], is_real || command == FUTEX_LOCK_PI ? CLOCK_REALTIME : CLOCK_MONOTONIC);
}

TimeLimit of_milliseconds(std::int32_t ms, std::optional<std::uint64_t> slept_ms) {
  return ms < 0 ? TimeLimit{} : of_span(static_cast<std::uint64_t>(ms), slept_ms);
}

TimeLimit of_timeval(const proc::ThreadSample& thread, std::uint64_t address, std::optional<std::uint64_t> slept_ms) {
  timeval time{};
  if (address == 0) return {};
  if (!proc::ProcessMemory(thread.tid).read(address, std::as_writable_bytes(std::span(&time, 1)))) return {true, {}};
  return of_span(in_ms(time.tv_sec, time.tv_usec, 1000), slept_ms);
}

}  // namespace

TimeLimit find_time_limit(const proc::ThreadSample& thread, std::optional<std::uint64_t> slept_ms) {
  if (thread.ended() || thread.call.running || !thread.call.in_syscall) return {};
  const auto& args = thread.call.args;
  const auto of_timespec = [&](std::uint64_t address) {
    return address == 0 ? TimeLimit{} : of_span(read_time(thread, address), slept_ms);
  };
  switch (thread.call.number) {
    case SYS_futex: return of_futex(thread, slept_ms);
    case SYS_poll: return of_milliseconds(proc::as_int(args[2]), slept_ms);
    case SYS_epoll_wait:
    case SYS_epoll_pwait: return of_milliseconds(proc::as_int(args[3]), slept_ms);
    case SYS_epoll_pwait2: return of_timespec(args[3]);
    case SYS_ppoll: return of_timespec(args[2]);
    case SYS_select: return of_timeval(thread, args[4], slept_ms);
    case SYS_pselect6: return of_timespec(args[4]);
    case SYS_nanosleep: return of_timespec(args[0]);
    case SYS_clock_nanosleep: {
      const bool is_absolute = (proc::as_int(args[1]) & TIMER_ABSTIME) != 0;
      return is_absolute ? of_clock(thread, args[2], proc::as_int(args[0])) : of_timespec(args[2]);
    }
    case SYS_rt_sigtimedwait: return of_timespec(args[2]);
    case SYS_semtimedop: return of_timespec(args[3]);
    case SYS_recvmmsg: return of_timespec(args[4]);
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend: return args[4] == 0 ? TimeLimit{} : of_clock(thread, args[4], CLOCK_REALTIME);
    default: return {};
  }
}

std::optional<std::uint64_t> parse_timer_left(std::string_view fdinfo) {
  const auto field = proc::find_field(fdinfo, "it_value");
  if (!field || !field->starts_with('(')) return std::nullopt;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  const char* const end = field->data() + field->size();
  const auto first = std::from_chars(field->data() + 1, end, seconds);
  if (first.ec != std::errc{} || end - first.ptr < 3 || first.ptr[0] != ',') return std::nullopt;
  const char* const second = first.ptr + (first.ptr[1] == ' ' ? 2 : 1);
  if (std::from_chars(second, end, nanoseconds).ec != std::errc{} || (seconds == 0 && nanoseconds == 0))
    return std::nullopt;
  return in_ms(seconds, nanoseconds, kNsOfMs);
}

}  // namespace forksight::watch
