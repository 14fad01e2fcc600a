// Processes that talk by pipes or sockets, each waiting for the other to read or to write first.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void pipe_deadlock(const Evidence& evidence, std::vector<Finding>& findings) {
  for (cycles::Cycle cycle : cycles::find_cycles(evidence.model())) {
    if (!cycles::is_made_of(cycle, {"pipe", "socket", "wait4", "mutex", "rwlock", "join"}) ||
        cycles::is_told_elsewhere(evidence, cycle, findings))
      continue;
    if (!cycles::has_via(cycle, "pipe") && !cycles::has_via(cycle, "socket")) continue;
    if (cycles::is_held_open(cycle)) continue;  // pipe-held-open
    const auto writes = [](const cycles::Link& link) {
      return link.wait->kind == model::WaitKind::kPipeWrite || link.wait->kind == model::WaitKind::kSocketWrite;
    };
    const auto writer = std::ranges::find_if(cycle, writes);
    const bool is_full = writer != cycle.end();
    if (is_full) std::rotate(cycle.begin(), writer, cycle.end());
    const cycles::Link& first = cycle.front();
    const bool waits_for_end = cycles::has_via(cycle, "wait4");
    Finding finding = cycles::begin_finding("pipe-deadlock", evidence, cycle);
    const model::Process& process = evidence.process(finding.process);
    finding.culprit.kind = CulpritKind::kPipe;
    finding.culprit.name = cycles::object(*first.wait);
    finding.summary =
        fmt::format("{} {} {} {}, and process {} {}", evidence.name(finding.process), hangs(process),
                    is_full ? "writing to" : "reading from", cycles::object(*first.wait), first.waker->pid,
                    waits_for_end ? "waits for its end instead of reading" : "waits for it in turn");
    cycles::tell(evidence, cycle, finding);
    if (is_full) {
      add_sentence(finding,
                   "A pipe or socket takes a limited number of bytes (a pipe 64 KiB): a writer sleeps until the other "
                   "side reads.");
      finding.fixes.push_back(
          {waits_for_end
               ? "Read all that the child writes before waiting for its end (Python: communicate(), not wait())."
               : "Read while there is still something to write: poll() both directions, or a thread for each."});
      finding.fixes.push_back({"Set O_NONBLOCK on the descriptors, and give up writing for a while on EAGAIN."});
    } else {
      add_sentence(finding, "Each of them waits for the other to speak first.");
      finding.fixes.push_back(
          {"Settle in the protocol who speaks when; flush what is buffered before waiting for an answer."});
      finding.fixes.push_back({"Wait for an answer with a time limit: poll() with a timeout, SO_RCVTIMEO."});
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
