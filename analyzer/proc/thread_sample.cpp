#include "proc/thread_sample.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <utility>

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

std::vector<SampledThreads> sample_threads(std::span<const ThreadsOf> processes) {
  std::vector<SampledThreads> all(processes.size());
  for (std::size_t at = 0; at < processes.size(); ++at) {
    for (const std::int32_t tid : processes[at].tids)
      all[at].threads.push_back(sample_status(processes[at].pid, tid, all[at].is_refused));
  }
  // A system call is read after the status. If the next sample has the same status, the thread has not run since. So
  // the thread is in this call.
  const std::vector<std::vector<ReadText>> texts = read_calls(processes);
  for (std::size_t at = 0; at < processes.size(); ++at) {
    auto& [threads, is_refused] = all[at];
    for (std::size_t i = 0; i < threads.size(); ++i) {
      std::optional<ThreadSample>& thread = threads[i];
      if (!thread || thread->ended()) continue;
      const auto call = parse_call(processes[at].pid, thread->tid, texts[at][i], is_refused);
      if (call) {
        thread->call = *call;
      } else {
        thread.reset();
      }
    }
  }
  return all;
}

SampledThreads sample_threads(std::int32_t pid, std::vector<std::int32_t> tids) {
  const ThreadsOf process{pid, std::move(tids)};
  return std::move(sample_threads(std::span(&process, 1)).front());
}

std::vector<SampledRound> sample_rounds(std::span<const std::int32_t> pids) {
  std::vector<SampledRound> rounds(pids.size());
  std::vector<ThreadsOf> processes;
  for (std::size_t at = 0; at < pids.size(); ++at) {
    ListedNumbers tids = list_numbers(proc_path(pids[at], "task"));
    rounds[at].is_refused = tids.outcome == ReadOutcome::kRefused;
    processes.push_back({pids[at], std::move(tids.numbers)});
  }
  std::vector<SampledThreads> sampled = sample_threads(processes);
  for (std::size_t at = 0; at < pids.size(); ++at) {
    auto& [threads, is_refused] = sampled[at];
    rounds[at].is_refused = rounds[at].is_refused || is_refused;
    const auto is_missing = [](const std::optional<ThreadSample>& thread) { return !thread; };
    if (threads.empty() || std::ranges::any_of(threads, is_missing)) continue;
    Round& round = rounds[at].round.emplace();
    round.threads.reserve(threads.size());
    for (auto& thread : threads) round.threads.push_back(std::move(*thread));
  }
  return rounds;
}

ThreadsOf list_living(std::int32_t pid, const Round& round) {
  ThreadsOf living{pid, {}};
  for (const ThreadSample& thread : round.threads) {
    if (!thread.ended()) living.tids.push_back(thread.tid);
  }
  return living;
}

std::optional<Round> sample_round(std::int32_t pid, bool& refused) {
  std::vector<SampledRound> sampled = sample_rounds(std::span(&pid, 1));
  refused = refused || sampled.front().is_refused;
  return std::move(sampled.front().round);
}

}  // namespace forksight::proc
