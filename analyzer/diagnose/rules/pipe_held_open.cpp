// A reader waits for the end of a pipe that somebody has open for writing without ever writing to it: the reader
// itself, the process that waits for the reader's end, or a sibling that inherited the descriptor.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// The reader that somebody waits for, if there is a choice: its end is what the pipe stands in the way of.
std::size_t find_reader(const cycles::Cycle& cycle) {
  for (std::size_t index = 0; index < cycle.size(); ++index) {
    const std::size_t before = (index + cycle.size() - 1) % cycle.size();
    if (cycles::is_reader(*cycle[index].wait) && cycle[before].waker->via == "wait4") return index;
  }
  const auto first =
      std::ranges::find_if(cycle, [](const cycles::Link& link) { return cycles::is_reader(*link.wait); });
  return static_cast<std::size_t>(first - cycle.begin());
}

std::string name_holders(const model::Wait& wait, std::int32_t own) {
  std::string names;
  for (const model::Waker& waker : wait.wakers) {
    if (waker.via == "shutdown") continue;  // the reader's own end
    const std::string who = waker.pid == own ? "the reader itself" : fmt::format("process {}", waker.pid);
    names += fmt::format("{}{} (descriptor {})", names.empty() ? "" : ", ", who, waker.fd);
  }
  return names;
}

}  // namespace

void pipe_held_open(const Evidence& evidence, std::vector<Finding>& findings) {
  for (cycles::Cycle cycle : cycles::find_cycles(evidence.model())) {
    if (!cycles::is_held_open(cycle) || cycles::is_told_elsewhere(evidence, cycle, findings)) continue;
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
        "{} {} reading from {}: the end of it never comes, because {} has it open for writing{}",
        evidence.name(finding.process), hangs(process), cycles::object(*reader.wait), is_own ? "it " + holder : holder,
        reader.waker->fd >= 0 ? fmt::format(" (descriptor {})", reader.waker->fd) : "");
    cycles::tell(evidence, cycle, finding);
    add_sentence(finding,
                 fmt::format("A reader gets end of file when the last writing end is closed. These are open: {}.",
                             name_holders(*reader.wait, process.pid)));
    add_sentence(finding, "None of those who have one will write or close it: they are stuck, too.");
    finding.fixes.push_back(
        {fmt::format("Close descriptor {} in {} right after fork(): each process keeps only the ends that it uses.",
                     reader.waker->fd, is_own ? "the reading process" : holder)});
    finding.fixes.push_back(
        {"Open pipes with O_CLOEXEC (pipe2()), so that no program that is started inherits them (Python: "
         "close_fds=True)."});
    if (cycles::has_via(cycle, "wait4"))
      finding.fixes.push_back({"Close the writing end before waiting for the reader's end."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
