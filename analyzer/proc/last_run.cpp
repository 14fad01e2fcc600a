#include "proc/last_run.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

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

// Where it is, the calling thread runs; so what it reads of itself is the present value of this processor's clock.
std::optional<double> read_clock() { return read_last_run("/proc/thread-self/sched"); }

// Each processor has a clock of its own, without the time that interrupts and the hypervisor took from it
// (rq_clock_task() of kernel/sched/core.c): on a busy machine they are seconds apart. To read another one's, this
// thread goes there for a moment, at most once a second.
std::optional<double> read_clock_of(std::size_t processor) {
  struct Reading {
    double value = 0;
    Clock::time_point at;
  };
  thread_local std::map<std::size_t, Reading> readings;
  const auto known = readings.find(processor);
  if (known != readings.end() && Clock::now() - known->second.at < std::chrono::seconds(1))
    return known->second.value + Milliseconds(Clock::now() - known->second.at).count();
  cpu_set_t before;
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(processor, &there);
  if (::sched_getaffinity(0, sizeof before, &before) != 0 || ::sched_setaffinity(0, sizeof there, &there) != 0)
    return read_clock();
  const auto value = read_clock();
  if (value) readings[processor] = {*value, Clock::now()};
  ::sched_setaffinity(0, sizeof before, &before);
  return value;
}

// Field 39 of its stat: the processor that it ran on last.
std::optional<std::size_t> read_processor(const std::string& stat_path) {
  constexpr int kFirst = 3, kProcessor = 39;
  const ReadText text = read_file(stat_path);
  const std::size_t name_end = text.text.rfind(')');
  if (!text || name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.text.substr(name_end + 1));
  std::string word;
  for (int field = kFirst; field <= kProcessor; ++field) {
    if (!(rest >> word)) return std::nullopt;
  }
  const auto number = parse_decimal(word);
  if (!number || *number < 0 || *number >= CPU_SETSIZE) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

std::optional<std::chrono::milliseconds> time_since_run(std::int32_t pid, std::int32_t tid) {
  const auto ran = read_last_run(task_path(pid, tid, "sched"));
  const auto processor = read_processor(task_path(pid, tid, "stat"));
  const auto now = ran && processor ? read_clock_of(*processor) : std::nullopt;
  if (!now || *now < *ran) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*now - *ran));
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

std::optional<std::chrono::milliseconds> resting_time(std::int32_t pid) {
  std::optional<std::chrono::milliseconds> least;
  for (const std::int32_t tid : list_numbers(proc_path(pid, "task")).numbers) {
    const auto rested = time_since_run(pid, tid);
    if (!rested) return std::nullopt;
    least = std::min(least.value_or(*rested), *rested);
  }
  return least;
}

std::optional<std::chrono::milliseconds> resting_time(std::int32_t pid, std::int32_t tid) {
  return time_since_run(pid, tid);
}

}  // namespace forksight::proc
