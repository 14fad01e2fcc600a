#include "inspect/java_locks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace forksight::inspect {
namespace {

// True if the thread is in the function of HotSpot (JDK 8 to 21) that enters `synchronized` code. Waits for locks of
// java.util.concurrent are not recognised, because such a wait looks like the wait of an idle thread of a pool.
bool waits_for_lock_of_java(const model::Wait& wait) {
  return std::ranges::any_of(wait.stack.frames, [](const model::Frame& frame) {
    return std::string_view(frame.function).starts_with("ObjectMonitor::enter");
  });
}

}  // namespace

std::vector<std::string> tell_java_locks(const model::Model& model) {
  std::vector<std::string> sentences;
  for (const model::Process& process : model.processes) {
    const auto threads = static_cast<std::size_t>(std::ranges::count_if(process.waits, waits_for_lock_of_java));
    if (threads == 0) continue;
    sentences.push_back(fmt::format(
        "process {}: {} to enter `synchronized` code of Java; forksight cannot see which thread is inside; "
        "`jstack {}` names it, and finds deadlocks",
        process.pid, threads == 1 ? "a thread waits" : fmt::format("{} threads wait", threads), process.pid));
  }
  return sentences;
}

}  // namespace forksight::inspect
