#include "proc/thread_sample.hpp"

#include <sys/syscall.h>

#include <utility>

#include "proc/proc_fs.hpp"

namespace forksight::proc {

void name_restarted(Syscall& call, std::string_view kernel_function) {
  const bool is_restarted = call.in_syscall && call.number == SYS_restart_syscall;
  if (is_restarted && kernel_function.find("poll_schedule") != std::string_view::npos) call.number = SYS_poll;
}

namespace {

std::optional<Syscall> parse_call(std::int32_t pid, std::int32_t tid, const ReadText& text, bool& refused) {
  refused = refused || text.outcome == ReadOutcome::kRefused;
  auto call = text ? parse_syscall(text.text) : std::nullopt;
  if (call && call->number == SYS_restart_syscall) name_restarted(*call, read_file(task_path(pid, tid, "wchan")).text);
  return call;
}

// Reads the status, but not the system call.
std::optional<ThreadSample> sample_status(std::int32_t pid, std::int32_t tid, bool& refused) {
  const ReadText status_text = read_file(task_path(pid, tid, "status"));
  refused = refused || status_text.outcome == ReadOutcome::kRefused;
  if (!status_text) return std::nullopt;
  auto status = parse_status(status_text.text);
  if (!status) return std::nullopt;
  ThreadSample thread;
  thread.tid = tid;
  thread.status = std::move(*status);
  return thread;
}

}  // namespace

std::optional<Syscall> read_call(std::int32_t pid, std::int32_t tid, bool& refused) {
  return parse_call(pid, tid, read_file(task_path(pid, tid, "syscall")), refused);
}

std::optional<ThreadSample> sample_thread(std::int32_t pid, std::int32_t tid, bool& refused) {
  auto thread = sample_status(pid, tid, refused);
  if (!thread || thread->ended()) return thread;
  const auto call = read_call(pid, tid, refused);
  if (!call) return std::nullopt;
  thread->call = *call;
  return thread;
}

std::vector<std::optional<ThreadSample>> sample_threads(std::int32_t pid, std::span<const std::int32_t> tids,
                                                        bool& refused) {
  std::vector<std::optional<ThreadSample>> threads;
  threads.reserve(tids.size());
  for (const std::int32_t tid : tids) threads.push_back(sample_status(pid, tid, refused));
  // A system call is read after the status. If the next sample has the same status, the thread has not run since, so it
  // is in this call.
  const std::vector<ReadText> texts = read_calls(pid, tids);
  for (std::size_t at = 0; at < texts.size(); ++at) {
    std::optional<ThreadSample>& thread = threads[at];
    if (!thread || thread->ended()) continue;
    const auto call = parse_call(pid, thread->tid, texts[at], refused);
    if (call) {
      thread->call = *call;
    } else {
      thread.reset();
    }
  }
  return threads;
}

std::optional<Round> sample_round(std::int32_t pid, bool& refused) {
  const ListedNumbers tids = list_numbers(proc_path(pid, "task"));
  refused = refused || tids.outcome == ReadOutcome::kRefused;
  if (tids.numbers.empty()) return std::nullopt;
  Round round;
  round.threads.reserve(tids.numbers.size());
  for (auto& thread : sample_threads(pid, tids.numbers, refused)) {
    if (!thread) return std::nullopt;
    round.threads.push_back(std::move(*thread));
  }
  return round;
}

}  // namespace forksight::proc
