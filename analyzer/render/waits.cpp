#include "render/waits.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "diagnose/futex_waits.hpp"
#include "diagnose/words.hpp"
#include "render/page.hpp"
#include "render/scope.hpp"
#include "render/stack_rows.hpp"

namespace forksight::render {
namespace {

constexpr std::size_t kMostProcesses = 16;
constexpr std::size_t kMostKinds = 8;
constexpr std::size_t kMostEnders = 6;

std::string describe_state(const model::Ender& ender) {
  if (ender.state == 'T') return fmt::format(", stopped (kill -CONT {} lets it go on)", ender.pid);
  if (ender.is_frozen) return ", frozen by its control group";
  switch (ender.state) {
    case 'Z':
    case 'X': return ", which has ended";
    case 't': return ", stopped by its tracer";
    case 'S': return ", asleep";
    case 'R': return ", running";
    case 'D': return ", in the kernel";
    default: return {};
  }
}

std::string describe_process(const model::Ender& ender, const model::Process& own, const model::Wait& wait) {
  const bool is_own = ender.pid == own.pid;
  std::string text;
  if (is_own && ender.tid == 0 && ender.via == "futex") {
    const std::string purpose = futex_waits::find_purpose(wait.stack).other_side;
    const bool is_known = wait.use == model::FutexUse::kUnknown && wait.stack.known();
    return is_known ? fmt::format("another thread of its process: {}", purpose) : "another thread of its process";
  }
  if (ender.tid != 0) {
    text = is_own ? fmt::format("thread {} of its process", ender.tid)
                  : fmt::format("thread {} of process {}", ender.tid, ender.pid);
  } else {
    text = is_own ? "this process itself" : fmt::format("process {}", ender.pid);
  }
  if (ender.fd >= 0) text += fmt::format(" by its descriptor {}", ender.fd);
  if (ender.via == "shared memory" && ender.fd < 0) text += ", which has the same memory";
  if (ender.via == "ptrace") text += ", which traces it";
  if (ender.via == "semaphore") text += ", which changed it last";
  if (!is_own || ender.tid != 0) text += describe_state(ender);
  if (!is_own && !ender.command.empty()) text += ": " + ender.command;
  return text;
}

std::string describe_timer(const model::Ender& ender) {
  return ender.in_ms ? fmt::format("{}, in {}", ender.what, words::duration(*ender.in_ms)) : ender.what;
}

std::string describe(const model::Ender& ender, const model::Process& own, const model::Wait& wait) {
  switch (ender.kind) {
    case model::EnderKind::kProcess: return describe_process(ender, own, wait);
    case model::EnderKind::kTimer: return describe_timer(ender);
    case model::EnderKind::kSignal:
    case model::EnderKind::kAnybody: return ender.what;
    case model::EnderKind::kContinue:
      return ender.what.empty() ? "whoever lets it go on" : fmt::format("{}, which lets it go on", ender.what);
  }
  return {};
}

// Returns one line for each ender. If several enders have the same line, it appears once.
std::vector<std::string> list_enders(const model::Process& own, const model::Wait& wait) {
  std::vector<std::string> lines;
  for (const model::Ender& ender : wait.enders) {
    std::string line = describe(ender, own, wait);
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string describe_call(const model::Wait& wait) {
  const std::string call = wait.call.empty() ? "waiting" : wait.call;
  return wait.target.empty() ? call : fmt::format("{}: {}", call, wait.target);
}

struct Kind {
  const model::Wait* first = nullptr;
  std::size_t count = 0;
  std::optional<std::uint64_t> least_ms;
  std::vector<std::string> enders;
};

// Groups threads that wait in the same call, at the same place, for the same object, and with the same enders.
std::vector<Kind> find_kinds(const model::Process& process) {
  std::vector<Kind> kinds;
  std::map<std::string, std::size_t> known;
  for (const model::Wait& wait : process.waits) {
    if (wait.state == 'Z' || wait.state == 'X') continue;
    Kind kind{&wait, 1, wait.for_ms, list_enders(process, wait)};
    std::string key = describe_call(wait) + "|" + words::place_with_function(wait.stack);
    for (const std::string& ender : kind.enders) key += "|" + ender;
    const auto [at, is_new] = known.try_emplace(std::move(key), kinds.size());
    if (is_new) {
      kinds.push_back(std::move(kind));
      continue;
    }
    Kind& same = kinds[at->second];
    ++same.count;
    if (same.least_ms) same.least_ms = wait.for_ms ? std::min(*same.least_ms, *wait.for_ms) : wait.for_ms;
  }
  return kinds;
}

std::string head_of(const model::Process& process) {
  const std::string exe(words::base_name(process.exe));
  std::string text = fmt::format("process {}{}", process.pid, exe.empty() ? exe : fmt::format(" ({})", exe));
  for (std::size_t i = 0; i < process.ways_out.size(); ++i)
    text += (i == 0 ? ", which no task can wake, only " : " or ") + process.ways_out[i];
  return text;
}

bool can_be_woken(const model::Process& process) {
  return process.liveness == model::Liveness::kAwake || !process.ways_out.empty();
}

// True for a process in which each thread waits for a child. An example is a shell that waits for the end of a job.
bool waits_only_for_children(const model::Process& process) {
  return std::ranges::all_of(process.waits,
                             [](const model::Wait& wait) { return wait.kind == model::WaitKind::kWaitChild; });
}

void add_kind(Page& page, const Kind& kind, const TextOptions& options) {
  const model::Wait& wait = *kind.first;
  std::string who = kind.count == 1 ? fmt::format("thread {}{}", wait.tid, words::name_in_quotes(wait.name))
                                    : words::count(kind.count, "thread", "threads");
  const bool is_still = wait.kind != model::WaitKind::kRunning;
  if (is_still && kind.least_ms)
    who += fmt::format(", for {}{}", words::duration(*kind.least_ms), kind.count == 1 ? "" : " or longer");
  page.item(Style::kPlain, "-", fmt::format("{}: {}", who, describe_call(wait)));
  add_stack(page, wait.stack, options);
  if (!is_still || !wait.are_enders_known) return;
  std::vector<std::string> enders(kind.enders.begin(), kind.enders.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                                 kind.enders.size(), kMostEnders)));
  if (kind.enders.size() > kMostEnders) enders.push_back(fmt::format("and {} more", kind.enders.size() - kMostEnders));
  if (enders.empty() && wait.state != 'D') enders.emplace_back("nobody that forksight can see");
  if (!enders.empty()) page.list("could be ended by:", enders);
}

}  // namespace

std::vector<model::ProcessId> find_without_finding(const model::Model& model, const std::vector<Finding>& findings) {
  std::unordered_set<model::ProcessId> told;
  std::unordered_set<std::int32_t> victims;
  for (const Finding& finding : findings) {
    told.insert(finding.processes.begin(), finding.processes.end());
    for (const Victim& victim : finding.victims) victims.insert(victim.pid);
  }
  const std::vector<bool> is_counted = find_counted(model, findings);
  std::vector<model::ProcessId> untold;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    const bool is_ancestor = !is_counted[id] && waits_only_for_children(process);
    if (!process.waits.empty() && !told.contains(id) && !victims.contains(process.pid) && !is_ancestor)
      untold.push_back(id);
  }
  return untold;
}

std::string render_waits(const model::Model& model, const std::vector<model::ProcessId>& processes,
                         const TextOptions& options) {
  if (processes.empty()) return {};
  Page page(options);
  const bool is_idle =
      std::ranges::all_of(processes, [&](model::ProcessId id) { return can_be_woken(model.processes[id]); });
  const bool is_core = std::ranges::any_of(processes, [&](model::ProcessId id) { return model.processes[id].is_core; });
  page.paragraph(Style::kBold,
                 is_core ? "What each thread was in:"
                 : is_idle
                     ? "Not proven to be stuck. What could end each wait, as far as forksight can see from outside:"
                     : "What each thread waits for, and who could end that:");
  for (std::size_t i = 0; i < processes.size() && i < kMostProcesses; ++i) {
    const model::Process& process = model.processes[processes[i]];
    page.paragraph(Style::kPlain, head_of(process), 2);
    const std::vector<Kind> kinds = find_kinds(process);
    std::size_t left = 0;
    for (std::size_t at = 0; at < kinds.size(); ++at) {
      if (at < kMostKinds) add_kind(page, kinds[at], options);
      if (at >= kMostKinds) left += kinds[at].count;
    }
    if (left > 0)
      page.item(Style::kPlain, "-",
                fmt::format("{} more; --format json has them all", words::count(left, "thread", "threads")));
  }
  if (processes.size() > kMostProcesses)
    page.paragraph(Style::kPlain,
                   fmt::format("and {} more; --format json has them all",
                               words::count(processes.size() - kMostProcesses, "process", "processes")),
                   2);
  return page.take();
}

}  // namespace forksight::render
