#include "proc/last_run.hpp"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {
namespace {

constexpr std::string_view kField = "se.exec_start";

std::optional<double> read_last_run(const std::string& path) {
  const ReadText text = read_file(path);
  return text ? parse_last_run(text.text) : std::nullopt;
}

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

// Reads the present value of the clock of this thread's processor. The calling thread runs, so its own record shows
// that value.
std::optional<double> read_clock() { return read_last_run("/proc/thread-self/sched"); }

bool move_to(std::size_t processor) {
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(processor, &there);
  return ::sched_setaffinity(0, sizeof there, &there) == 0;
}

bool may_run_on(std::size_t processor) {
  cpu_set_t mine;
  return processor < CPU_SETSIZE && ::sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_ISSET(processor, &mine);
}

// Starts a thread that moves to the processor and reads the clock of this processor. If a real-time process keeps the
// processor for itself, the thread arrives late or never. So this function waits for at most kMostPatience. After
// kMostLate late threads, it starts no more threads.
std::optional<double> visit(std::size_t processor) {
  constexpr std::chrono::milliseconds kMostPatience{200};
  constexpr int kMostLate = 2;
  static std::atomic<int> late = 0;
  if (late >= kMostLate || !may_run_on(processor)) return std::nullopt;
  auto promise = std::make_shared<std::promise<std::optional<double>>>();
  std::future<std::optional<double>> answer = promise->get_future();
  try {
    std::thread([promise, processor] {
      promise->set_value(move_to(processor) ? read_clock() : std::nullopt);
    }).detach();
  } catch (const std::system_error&) {
    return std::nullopt;  // the limit on threads is reached
  }
  if (answer.wait_for(kMostPatience) == std::future_status::ready) return answer.get();
  ++late;
  return std::nullopt;
}

// Each processor has its own clock (rq_clock_task() of kernel/sched/core.c). The clock does not count the time that
// interrupts and the hypervisor took. On a busy machine, these clocks differ by seconds. Each clock is read at most
// once a second.
std::optional<double> read_clock_of(std::size_t processor) {
  struct Reading {
    double value = 0;
    Clock::time_point at;
  };
  thread_local std::map<std::size_t, Reading> readings;
  const auto known = readings.find(processor);
  if (known != readings.end() && Clock::now() - known->second.at < std::chrono::seconds(1))
    return known->second.value + Milliseconds(Clock::now() - known->second.at).count();
  const auto value = visit(processor);
  if (value) readings[processor] = {*value, Clock::now()};
  return value;
}

// Returns the age of a thread. `start_ticks` is field 22 of its stat: the ticks from the start of the machine to the
// start of the thread (proc_pid_stat(5)).
std::chrono::milliseconds find_age(std::uint64_t start_ticks) {
  timespec now{};
  const auto ticks_a_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const std::uint64_t present =
      static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
  const std::uint64_t start = start_ticks * 1000 / ticks_a_second;
  return std::chrono::milliseconds(present > start ? present - start : 0);
}

std::optional<std::chrono::milliseconds> time_since_run(std::int32_t pid, std::int32_t tid) {
  const auto ran = read_last_run(task_path(pid, tid, "sched"));
  const auto stat = parse_stat(read_file(task_path(pid, tid, "stat")).text);
  const auto now = ran && stat && stat->processor ? read_clock_of(*stat->processor) : std::nullopt;
  if (!now || *now < *ran) return std::nullopt;
  // A thread that was never taken off a processor has `ran` 0, so its `rest` means nothing. No thread can rest longer
  // than it exists.
  const std::chrono::milliseconds age = find_age(stat->start_ticks);
  const std::chrono::milliseconds rest(static_cast<std::int64_t>(*now - *ran));
  if (*ran == 0 && rest > age) return std::nullopt;
  return std::min(rest, age);
}

}  // namespace

std::optional<double> parse_last_run(std::string_view text) {
  const std::size_t at = text.find(kField);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t colon = text.find(':', at);
  const std::size_t end = text.find('\n', at);
  if (colon == std::string_view::npos || end == std::string_view::npos || colon > end) return std::nullopt;
  const std::string number(text.substr(colon + 1, end - colon - 1));
  char* rest = nullptr;
  const double value = std::strtod(number.c_str(), &rest);
  if (rest == number.c_str() || !(value >= 0)) return std::nullopt;
  return value;
}

std::optional<std::chrono::milliseconds> idle_time(std::int32_t pid) {
  std::optional<std::chrono::milliseconds> least;
  for (const std::int32_t tid : list_numbers(proc_path(pid, "task")).numbers) {
    const auto rested = time_since_run(pid, tid);
    if (!rested) return std::nullopt;
    least = std::min(least.value_or(*rested), *rested);
  }
  return least;
}

std::optional<std::chrono::milliseconds> idle_time(std::int32_t pid, std::int32_t tid) {
  return time_since_run(pid, tid);
}

}  // namespace forksight::proc
