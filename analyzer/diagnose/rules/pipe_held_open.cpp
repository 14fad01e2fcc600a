// A reader waits for the end of file of a pipe, but a process has the pipe open for writing and never writes to it.
// That process may be the reader itself, the process that waits for the reader to end, or a sibling that inherited the
// descriptor. If all processes that have the pipe open for writing are stuck, the hang is proven. If a sibling sleeps
// but may still be woken, the finding is only possible, and names the sibling as a suspect.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnose/rules.hpp"
#include "diagnose/suspects.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// Returns the index of the reader that the finding is about. If the previous process of a ring waits for the end of a
// reader, the result is that reader. Otherwise the result is the first reader of the ring.
std::size_t find_reader(const cycles::Cycle& cycle) {
  for (std::size_t index = 0; index < cycle.size(); ++index) {
    const std::size_t before = (index + cycle.size() - 1) % cycle.size();
    if (cycles::is_reader(*cycle[index].wait) && cycle[before].waker->via == "wait4") return index;
  }
  const auto first =
      std::ranges::find_if(cycle, [](const cycles::Link& link) { return cycles::is_reader(*link.wait); });
  return static_cast<std::size_t>(first - cycle.begin());
}

// Lists the processes that have a writing end, with their descriptors. If there are too many processes, the list names
// only the first ones and says how many more there are. The same holds for the descriptors of one process.
std::string name_holders(const model::Wait& wait, std::int32_t own) {
  constexpr std::size_t kMostDescriptors = 4;  // the most descriptors that are listed for one process
  constexpr std::size_t kMostProcesses = 16;
  std::vector<std::pair<std::int32_t, std::vector<std::int32_t>>> held;  // in the order of the wakers
  std::unordered_map<std::int32_t, std::size_t> places;
  for (const model::Waker& waker : wait.wakers) {
    if (!model::is_waited_for(waker.via)) continue;
    const auto [place, is_new] = places.try_emplace(waker.pid, held.size());
    if (is_new) held.push_back({waker.pid, {}});
    held[place->second].second.push_back(waker.fd);
  }
  std::string names;
  for (std::size_t i = 0; i < held.size() && i < kMostProcesses; ++i) {
    const auto& [pid, fds] = held[i];
    const std::string who = pid == own ? "the reader itself" : fmt::format("process {}", pid);
    for (std::size_t at = 0; at < fds.size() && at < kMostDescriptors; ++at)
      names += fmt::format("{}{} (descriptor {})", names.empty() ? "" : ", ", who, fds[at]);
    if (fds.size() > kMostDescriptors)
      names += fmt::format(" and {} of {}",
                           words::count(fds.size() - kMostDescriptors, "more descriptor", "more descriptors"), who);
  }
  if (held.size() > kMostProcesses)
    names += fmt::format(", and {}", words::count(held.size() - kMostProcesses, "more process", "more processes"));
  return names;
}

const model::Process* find_process(const Evidence& evidence, std::int32_t pid) {
  const auto ids = evidence.processes_with_pid(pid);
  return ids.empty() ? nullptr : &evidence.process(ids.front());
}

// True if a child of the process, or another child of its parent, has ended. That child may have been the writer.
bool has_lost_kin(const Evidence& evidence, const model::Process& reader) {
  const auto has_lost = [](const model::Process& process) { return process.has_reaped || !process.zombies.empty(); };
  const model::Process* const parent = find_process(evidence, reader.ppid);
  return has_lost(reader) || (parent != nullptr && has_lost(*parent));
}

// True if `process` waits for process `pid`. If a process waits for the reader and has a writing end, that process may
// be a worker that has nothing to do yet.
bool waits_for(const model::Process& process, std::int32_t pid) {
  return std::ranges::any_of(process.waits, [&](const model::Wait& wait) {
    return std::ranges::any_of(wait.enders, [&](const model::Ender& ender) { return ender.pid == pid; });
  });
}

// True if the process has a writing end, and nothing suggests that it will ever write: it sleeps, and it has written
// nothing since it was forked. Its descriptor must not be a standard stream, because programs pass these on purpose.
bool is_suspect(const Evidence& evidence, const model::Process& reader, const model::Ender& ender) {
  const bool stands_out = ender.kind == model::EnderKind::kProcess && ender.via == "pipe" && ender.pid != reader.pid &&
                          ender.fd > 2 && ender.state == 'S' && !ender.is_frozen && !ender.may_have_written;
  const model::Process* const holder = stands_out ? find_process(evidence, ender.pid) : nullptr;
  return holder != nullptr && holder->liveness == model::Liveness::kAwake && !holder->waits.empty() &&
         !waits_for(*holder, reader.pid);
}

// True if only suspects have a writing end. The reader's signal handlers do not count, because they do not bring the
// end of file.
bool has_suspects_only(const Evidence& evidence, const model::Process& reader, const model::Wait& wait) {
  bool has_any = false;
  for (const model::Ender& ender : wait.enders) {
    if (ender.kind == model::EnderKind::kSignal) continue;
    if (!is_suspect(evidence, reader, ender)) return false;
    has_any = true;
  }
  return has_any;
}

Finding suspect(const Evidence& evidence, model::ProcessId id, const model::Wait& wait) {
  const auto first = std::ranges::find(wait.enders, model::EnderKind::kProcess, &model::Ender::kind);
  const std::size_t others =
      static_cast<std::size_t>(std::ranges::count(wait.enders, model::EnderKind::kProcess, &model::Ender::kind)) - 1;
  Finding finding = Evidence::begin_finding("pipe-held-open", id, wait);
  finding.harm = Certainty::kPossible;
  finding.cause = Certainty::kPossible;
  finding.outcome = Outcome::kMayHang;
  finding.culprit.kind = CulpritKind::kPipe;
  finding.culprit.name = cycles::object(wait);
  finding.culprit.holder.emplace();
  finding.culprit.holder->pid = first->pid;
  finding.culprit.holder->tid = first->pid;
  finding.culprit.holder->alive = true;
  finding.summary = fmt::format(
      "{} reads from {}{}, and may never get end of file: process {} has it open for writing (descriptor {}), sleeps, "
      "and has never written anything",
      evidence.name(id), cycles::object(wait), words::at(" at ", wait.stack), first->pid, first->fd);
  const std::string since = wait.for_ms ? fmt::format(" for {}", words::duration(*wait.for_ms)) : std::string();
  add_sentence(finding,
               fmt::format("Thread {} of {} has waited{} in a read from {} (its descriptor {}){}.", wait.tid,
                           evidence.name(id), since, cycles::object(wait), wait.fd, words::at(" at ", wait.stack)));
  add_sentence(finding, "A reader gets end of file when the last writing end is closed.");
  for (const model::Ender& ender : wait.enders) {
    if (ender.kind != model::EnderKind::kProcess) continue;
    add_sentence(finding,
                 fmt::format("Process {} has one, its descriptor {}: it sleeps, and since it was forked it has "
                             "written nothing to anything. Its command: {}.",
                             ender.pid, ender.fd, ender.command));
  }
  add_sentence(finding, fmt::format("{} writing end is open anywhere. A child of {} or of its parent has ended: that "
                                    "child may have been the one that should write.",
                                    others == 0 ? "No other" : "No further", evidence.name(id)));
  add_sentence(finding, "This is not certain: a process that has not begun to write yet looks the same.");
  finding.fixes.push_back({fmt::format(
      "Close descriptor {} in process {} right after fork(): each process keeps only the ends that it uses.", first->fd,
      first->pid)});
  finding.fixes.push_back(
      {"Open pipes with O_CLOEXEC (pipe2()), so that started programs do not inherit them (Python: close_fds=True)."});
  return finding;
}

void find_suspects(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  suspects::Explained explained;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& reader = model.processes[id];
    const bool may_go_on = reader.liveness == model::Liveness::kAwake || has_way_out(reader);
    if (!may_go_on || explained.has(evidence, id, findings) || !has_lost_kin(evidence, reader)) continue;
    const auto wait = std::ranges::find_if(reader.waits, [&](const model::Wait& one) {
      return one.kind == model::WaitKind::kPipeRead && has_suspects_only(evidence, reader, one);
    });
    if (wait != reader.waits.end()) findings.push_back(suspect(evidence, id, *wait));
  }
}

}  // namespace

void pipe_held_open(const Evidence& evidence, FindingList& findings) {
  cycles::OtherFindings others(evidence);
  for (cycles::Cycle cycle : evidence.cycles()) {
    if (!cycles::is_held_open(cycle) || others.explain(cycle, findings)) continue;
    std::rotate(cycle.begin(), cycle.begin() + static_cast<std::ptrdiff_t>(find_reader(cycle)), cycle.end());
    const cycles::Link& reader = cycle.front();
    Finding finding = cycles::begin_finding("pipe-held-open", evidence, cycle);
    const model::Process& process = evidence.process(finding.process);
    const bool is_own = reader.waker->pid == process.pid;
    const std::string holder = is_own ? "itself" : fmt::format("process {}", reader.waker->pid);
    finding.culprit.kind = CulpritKind::kPipe;
    finding.culprit.name = cycles::object(*reader.wait);
    finding.culprit.holder = cycles::holder(evidence, cycle, 0);
    finding.summary = fmt::format(
        "{} {} reading from {}{}: nobody is left to write, and end of file never comes, because {} has it open for "
        "writing{}",
        evidence.name(finding.process), hangs(process), cycles::object(*reader.wait),
        words::at(" at ", reader.wait->stack), is_own ? "it " + holder : holder,
        reader.waker->fd >= 0 ? fmt::format(" (descriptor {})", reader.waker->fd) : "");
    cycles::tell(evidence, cycle, finding);
    add_sentence(finding,
                 fmt::format("A reader gets end of file when the last writing end is closed. These are open: {}.",
                             name_holders(*reader.wait, process.pid)));
    add_sentence(finding, "None of these processes will write or close its end: they are stuck, too.");
    if (!is_own)
      finding.fixes.push_back({"If the reader waits for data: send it before waiting for the reader to end."});
    finding.fixes.push_back(
        {fmt::format("Close descriptor {} in {} right after fork(): each process keeps only the ends that it uses.",
                     reader.waker->fd, is_own ? "the reading process" : holder)});
    finding.fixes.push_back(
        {"Open pipes with O_CLOEXEC (pipe2()), so that started programs do not inherit them (Python: "
         "close_fds=True)."});
    if (cycles::has_via(cycle, "wait4"))
      finding.fixes.push_back({"Close the writing end before waiting for the reader's end."});
    findings.push_back(std::move(finding));
  }
  find_suspects(evidence, findings);
}

}  // namespace forksight::rules
