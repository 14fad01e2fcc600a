// A child of vfork() waits for something that only the parent's suspended thread could do. The child runs in its
// parent's memory. The thread that called vfork() sleeps in this call until the child execs or ends. So both wait for
// ever.
// The kernel wakes the suspended thread as soon as the child execs. So if /proc shows that the thread still sleeps in
// vfork(), it is proven that the child has not called exec.
// The rule also reports a child of vfork() that called exit(). The exit handlers of the parent then ran in the parent's
// memory.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnose/rules.hpp"
#include "diagnose/suspects.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// A thread that is in vfork(), and the child for which it waits.
struct Suspended {
  model::ProcessId process = 0;
  const model::Wait* wait = nullptr;
  model::ProcessId child = 0;
};

std::vector<Suspended> find_suspended(const model::Model& model) {
  std::vector<Suspended> found;
  std::map<std::pair<std::string_view, std::int32_t>, std::vector<model::ProcessId>> ids;  // by host and pid
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    if (is_proven_dead(model.processes[id])) ids[{model.processes[id].host, model.processes[id].pid}].push_back(id);
  }
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    for (const model::Wait& wait : model.processes[id].waits) {
      if (wait.kind != model::WaitKind::kVfork || !wait.is_stuck || wait.wakers.size() != 1) continue;
      const auto children = ids.find({model.processes[id].host, wait.wakers.front().pid});
      if (children == ids.end()) continue;
      for (const model::ProcessId child : children->second) found.push_back({id, &wait, child});
    }
  }
  return found;
}

// The rings of waits, so that a ring is found by a wait or a process without a search.
struct Rings {
  explicit Rings(const std::vector<cycles::Cycle>& all) {
    for (const cycles::Cycle& ring : all) {
      for (const cycles::Link& link : ring) {
        by_wait.try_emplace(link.wait, &ring);
        members.insert(link.process);
      }
    }
  }
  std::unordered_map<const model::Wait*, const cycles::Cycle*> by_wait;
  std::unordered_set<model::ProcessId> members;
};

// Returns the ring, beginning with the child's own wait. This is the link after the wait in vfork().
cycles::Cycle begin_with_child(cycles::Cycle ring, const Suspended& suspended) {
  const auto at = std::ranges::find(ring, suspended.wait, &cycles::Link::wait);
  std::rotate(ring.begin(), at + 1, ring.end());
  return ring;
}

Holder holder_of(const Evidence& evidence, const Suspended& suspended) {
  Holder holder;
  holder.pid = evidence.process(suspended.process).pid;
  holder.tid = suspended.wait->tid;
  holder.name = suspended.wait->name;
  holder.alive = true;
  return holder;
}

std::string suspended_words(const Evidence& evidence, const Suspended& suspended) {
  const model::Process& parent = evidence.process(suspended.process);
  const model::Wait& wait = *suspended.wait;
  return fmt::format("thread {}{} of {}", wait.tid, words::name_in_quotes(wait.name),
                     words::base_name(parent.exe).empty()
                         ? fmt::format("process {}", parent.pid)
                         : fmt::format("process {} ({})", parent.pid, words::base_name(parent.exe)));
}

std::string wait_words(const model::Wait& wait) {
  switch (wait.kind) {
    case model::WaitKind::kFutex:
      if (wait.use == model::FutexUse::kMutex || wait.use == model::FutexUse::kRwlockRead ||
          wait.use == model::FutexUse::kRwlockWrite)
        return "locking " + cycles::object(wait);
      return "waiting for a wake-up";
    case model::WaitKind::kPipeRead:
    case model::WaitKind::kSocketRead: return "reading from " + cycles::object(wait);
    case model::WaitKind::kPipeWrite:
    case model::WaitKind::kEventfdWrite:
    case model::WaitKind::kSocketWrite: return "writing to " + cycles::object(wait);
    case model::WaitKind::kFileLock: return "locking the file " + cycles::object(wait);
    case model::WaitKind::kPoll: return "in poll()";
    default: return "waiting";
  }
}

void set_culprit(const Evidence& evidence, const Suspended& suspended, const cycles::Cycle& ring, Finding& finding) {
  const bool is_lock = !ring.empty() && (ring.front().waker->via == "mutex" || ring.front().waker->via == "rwlock");
  if (is_lock) {
    finding.culprit = cycles::culprit_lock(*ring.front().wait);
    finding.culprit.holder = cycles::holder(evidence, ring, 0);
  } else {
    finding.culprit.kind = CulpritKind::kThread;
    finding.culprit.name = "the thread that is in vfork()";
    finding.culprit.library = evidence.process(suspended.process).exe;
    finding.culprit.holder = holder_of(evidence, suspended);
  }
  finding.culprit.stack = suspended.wait->stack;
  finding.culprit.is_now = finding.culprit.stack.known();
}

Finding describe(const Evidence& evidence, const Suspended& suspended, const cycles::Cycle& ring) {
  const model::Process& child = evidence.process(suspended.child);
  const model::Wait& wait = ring.empty() ? child.waits.front() : *ring.front().wait;
  const bool is_beyond = no_signal_can_wake(child);
  Finding finding;
  if (ring.empty()) {
    finding.rule = "vfork-misuse";
    finding.process = suspended.child;
    finding.tid = wait.tid;
    finding.thread_name = wait.name;
    finding.stack = wait.stack;
    finding.harm = is_beyond ? Certainty::kProven : Certainty::kLikely;
    finding.cause = Certainty::kProven;
    finding.outcome = is_beyond ? Outcome::kHang : Outcome::kMayHang;
  } else {
    finding = cycles::begin_finding("vfork-misuse", evidence, ring);
    // No signal handler ends a wait in vfork() or for a lock.
    const auto via_lock = [](const cycles::Link& link) {
      return link.waker->via == "mutex" || link.waker->via == "rwlock" || link.waker->via == "vfork";
    };
    if (std::ranges::all_of(ring, via_lock)) {
      finding.harm = Certainty::kProven;
      finding.cause = Certainty::kProven;
      finding.outcome = Outcome::kHang;
    }
  }
  finding.processes = {suspended.child};
  if (evidence.process(suspended.process).liveness != model::Liveness::kVictim)
    finding.processes.push_back(suspended.process);
  set_culprit(evidence, suspended, ring, finding);
  const std::string parent = suspended_words(evidence, suspended);
  const bool is_held = !ring.empty() && ring.size() == 2;
  finding.summary =
      fmt::format("process {}, a child of vfork(), {} {}{}: {} {} sleeps in vfork() until this child execs or ends",
                  child.pid, hangs(child), wait_words(wait), words::at(" at ", wait.stack), parent,
                  is_held && finding.culprit.kind == CulpritKind::kLock ? "has it, and" : "");
  if (const auto gap = finding.summary.find("  "); gap != std::string::npos) finding.summary.erase(gap, 1);
  if (ring.empty()) {
    add_sentence(finding, fmt::format("Process {} is {}{}, and has not exec'd.", child.pid, wait_words(wait),
                                      words::at(" at ", wait.stack)));
    add_sentence(finding, evidence.describe_liveness(child));
    add_sentence(finding,
                 fmt::format("The child has the memory of its parent, {}, which is in vfork() and waits for the child.",
                             parent));
  } else {
    cycles::tell(evidence, ring, finding);
    add_sentence(finding, fmt::format("Process {} was made by vfork(): it has its parent's memory and locks, and the "
                                      "thread that called vfork() waits until the child execs or ends.",
                                      child.pid));
  }
  finding.fixes.push_back(
      {"In a child of vfork() do nothing but exec or _exit(): open, lock, look up and allocate before vfork()."});
  finding.fixes.push_back(
      {"Use posix_spawn(), which is as quick as vfork(). Its file actions say what the child needs."});
  finding.fixes.push_back({"Use fork() where the child has work to do before it execs."});
  return finding;
}

Finding describe(const Evidence& evidence, const model::VforkExit& made) {
  const std::string parent = evidence.name(made.process);
  const std::string where = words::at(" at ", made.stack);
  Finding finding;
  finding.rule = "vfork-misuse";
  finding.harm = Certainty::kProven;
  finding.cause = Certainty::kProven;
  finding.outcome = Outcome::kCorruption;
  finding.process = made.process;
  finding.processes = {made.process};
  finding.tid = made.tid;
  finding.stack = made.stack;
  finding.culprit.kind = CulpritKind::kProcess;
  finding.culprit.name = "child of vfork()";
  if (const model::Frame* const frame = words::find_user_frame(made.stack)) finding.culprit.library = frame->module;
  finding.summary = fmt::format(
      "process {}, a child of vfork(), called exit(){}: the exit handlers of its parent, {}, ran in the parent's own "
      "memory",
      made.child, where, parent);
  add_sentence(finding, fmt::format("Thread {} of {} called vfork(), and its child, process {}, called exit(){}.",
                                    made.tid, parent, made.child, where));
  add_sentence(
      finding,
      "A child of vfork() has its parent's memory. So exit() in the child ran the atexit handlers of the parent and "
      "the destructors of the parent's static objects, and wrote what the parent's streams had in their buffers. "
      "These handlers and destructors do not run again when the parent ends.");
  finding.fixes.push_back({"Call _exit() where exec failed in a child of vfork(): it runs no handlers.", true});
  finding.fixes.push_back({"Use posix_spawn(): if the exec fails, it returns the error, and there is no child."});
  return finding;
}

}  // namespace

void vfork_misuse(const Evidence& evidence, FindingList& findings) {
  for (const model::VforkExit& made : evidence.model().vfork_exits) findings.push_back(describe(evidence, made));
  const std::vector<Suspended> all = find_suspended(evidence.model());
  if (all.empty()) return;
  const Rings rings(evidence.cycles());
  suspects::Explained explained;
  cycles::OtherFindings others(evidence);
  for (const Suspended& suspended : all) {
    const auto found = rings.by_wait.find(suspended.wait);
    const cycles::Cycle ring =
        found == rings.by_wait.end() ? cycles::Cycle{} : begin_with_child(*found->second, suspended);
    const bool ends_with_child = !ring.empty() && ring.front().process == suspended.child;
    const bool is_explained =
        ends_with_child ? others.explain(ring, findings)
                        : rings.members.contains(suspended.child) || explained.has_about(suspended.child, findings);
    if (is_explained) continue;
    findings.push_back(describe(evidence, suspended, ends_with_child ? ring : cycles::Cycle{}));
  }
}

}  // namespace forksight::rules
