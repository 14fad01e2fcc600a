#include "proc/last_run.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "proc/proc_fs.hpp"

namespace forksight::proc {
namespace {

constexpr std::string_view kField = "se.exec_start";

std::optional<double> read_last_run(const std::string& path) {
  const ReadText text = read_file(path);
  return text ? parse_last_run(text.text) : std::nullopt;
}

// Of this thread, which runs, the last run is the clock's present value.
std::optional<std::chrono::milliseconds> time_since(std::optional<double> ran) {
  const auto now = read_last_run("/proc/thread-self/sched");
  if (!ran || !now || *now < *ran) return std::nullopt;
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
  std::optional<double> latest;
  for (const std::int32_t tid : list_numbers(proc_path(pid, "task")).numbers) {
    const auto ran = read_last_run(task_path(pid, tid, "sched"));
    if (!ran) return std::nullopt;
    latest = std::max(latest.value_or(0), *ran);
  }
  return time_since(latest);
}

std::optional<std::chrono::milliseconds> resting_time(std::int32_t pid, std::int32_t tid) {
  return time_since(read_last_run(task_path(pid, tid, "sched")));
}

}  // namespace forksight::proc
