#include "diagnose/wait_cycles.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>

#include "diagnose/words.hpp"

namespace forksight::cycles {

namespace {

using model::WaitKind;

struct Node {
  model::ProcessId process;
  const model::Wait* wait;
};

struct Edge {
  std::size_t target;
  const model::Waker* waker;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<std::vector<Edge>> edges;
};

// True if it is known which thread or process the waker is. False if it is known only that some thread of a process
// could end the wait, or some process with the same memory or timer.
bool is_understood(const model::Waker& waker) {
  return waker.via != "futex" && waker.via != "shared memory" && waker.via != "timerfd" &&
         model::is_waited_for(waker.via);
}

Graph build(const model::Model& model) {
  Graph graph;
  std::map<std::pair<std::string, std::int32_t>, std::vector<std::size_t>> by_process;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (process.liveness == model::Liveness::kVictim) continue;  // the process for which the victim waits is the cause
    for (const model::Wait& wait : process.waits) {
      if (!wait.is_stuck) continue;
      by_process[{process.host, process.pid}].push_back(graph.nodes.size());
      graph.nodes.push_back({id, &wait});
    }
  }
  graph.edges.resize(graph.nodes.size());
  for (std::size_t from = 0; from < graph.nodes.size(); ++from) {
    const std::string& host = model.processes[graph.nodes[from].process].host;
    for (const model::Waker& waker : graph.nodes[from].wait->wakers) {
      const auto threads = by_process.find({host, waker.pid});
      if (!is_understood(waker) || threads == by_process.end()) continue;
      // A rwlock does not record its readers, so the waker is an unknown reader (its tid is 0). The only ring that
      // forksight can then recognise is a writer that waits for itself.
      if (waker.via == "rwlock" && waker.tid == 0) {
        graph.edges[from].push_back({from, &waker});
        continue;
      }
      for (const std::size_t target : threads->second) {
        if (waker.tid == 0 || graph.nodes[target].wait->tid == waker.tid) graph.edges[from].push_back({target, &waker});
      }
    }
  }
  return graph;
}

// Returns the shortest ring through the node `start`; empty if there is none. `may_be_itself`: an edge from a thread to
// itself counts as a ring. find_cycles() first searches without such rings. The reason is that a waker may name only a
// process. Then each thread of that process gets an edge, even the waiting thread itself. Edges of the kind `without`
// are left out.
Cycle find_shortest(const Graph& graph, std::size_t start, bool may_be_itself, std::string_view without) {
  struct Step {
    std::size_t from;
    const model::Waker* waker;
  };
  std::map<std::size_t, Step> reached_from;
  std::deque<std::size_t> open{start};
  while (!open.empty()) {
    const std::size_t at = open.front();
    open.pop_front();
    for (const Edge& edge : graph.edges[at]) {
      if (edge.target == start && at == start && !may_be_itself) continue;
      if (edge.waker->via == without) continue;
      if (edge.target != start) {
        if (reached_from.try_emplace(edge.target, Step{at, edge.waker}).second) open.push_back(edge.target);
        continue;
      }
      Cycle cycle{{graph.nodes[at].process, graph.nodes[at].wait, edge.waker}};
      for (std::size_t back = at; back != start;) {
        const Step& step = reached_from.at(back);
        back = step.from;
        cycle.insert(cycle.begin(), {graph.nodes[back].process, graph.nodes[back].wait, step.waker});
      }
      return cycle;
    }
  }
  return {};
}

// For a link whose process goes on: true if the other threads of the process cannot end the wait of this link. But
// other threads can cancel a thread that joins, or a thread whose wait has `may_be_cancelled`. If the ring contains the
// GIL, no other thread really goes on: threads that wait for the GIL wake up again and again, which only looks like
// progress. If the owner of a normal or adaptive mutex locks the mutex again, another thread may unlock it, as if it
// were a semaphore. Such a program is not valid, but it works.
bool is_beyond_others(const Cycle& cycle, const Link& link) {
  if ((link.waker->via == "join" && !has_via(cycle, "GIL")) || link.wait->may_be_cancelled) return false;
  const model::MutexType type = link.wait->mutex_type;
  return cycle.size() > 1 || (type != model::MutexType::kNormal && type != model::MutexType::kAdaptive);
}

std::string own_word(const model::Wait& wait) {
  switch (wait.use) {
    case model::FutexUse::kMutex: return "mutex";
    case model::FutexUse::kRwlockRead:
    case model::FutexUse::kRwlockWrite: return "rwlock";
    default: return "futex";
  }
}

std::string descriptor(const model::Wait& wait) {
  return wait.fd >= 0 ? fmt::format("{} (its descriptor {})", object(wait), wait.fd) : object(wait);
}

std::string tell_link(const Evidence& evidence, const Cycle& cycle, std::size_t index) {
  const bool names_process = !is_of_one_process(cycle);
  const Link& link = cycle[index];
  const model::Wait& wait = *link.wait;
  const std::string who = thread(evidence, link, names_process) + words::at(" at ", wait.stack);
  const std::string next =
      cycle.size() == 1 ? "it itself" : thread(evidence, cycle[(index + 1) % cycle.size()], names_process);
  const std::string other = cycle.size() == 1 ? "its own process" : fmt::format("process {}", link.waker->pid);
  const std::string by = link.waker->fd >= 0 ? fmt::format(" (descriptor {} there)", link.waker->fd) : std::string();
  switch (wait.kind) {
    case WaitKind::kWaitChild: return fmt::format("{} waits for process {} to end.", who, link.waker->pid);
    case WaitKind::kPipeRead:
      return fmt::format("{} reads from {}, which {} has open for writing{}.", who, descriptor(wait), other, by);
    case WaitKind::kPipeWrite:
      return fmt::format("{} writes to {}, which is full and which {} has open for reading{}.", who, descriptor(wait),
                         other, by);
    case WaitKind::kSocketRead:
      return fmt::format("{} receives from {}, whose other end {} has{}.", who, descriptor(wait), other, by);
    case WaitKind::kSocketWrite:
      return fmt::format("{} sends to {}, which is full and whose other end {} has{}.", who, descriptor(wait), other,
                         by);
    case WaitKind::kEventfd:
      return fmt::format("{} waits for {}, which {} has open{}.", who, descriptor(wait), other, by);
    case WaitKind::kEventfdWrite:
      return fmt::format("{} writes to {}, whose count has no room for the number, and which {} has open{}.", who,
                         descriptor(wait), other, by);
    case WaitKind::kPoll: return fmt::format("{} polls, and {} has the other end{}.", who, other, by);
    case WaitKind::kFileLock:
      return fmt::format("{} waits for a lock of {}, which {} holds{}.", who, descriptor(wait), other, by);
    case WaitKind::kVfork: return fmt::format("{} is in vfork() until process {} execs or ends.", who, link.waker->pid);
    default: break;
  }
  if (wait.use == model::FutexUse::kJoin) return fmt::format("{} waits for the end of {}.", who, next);
  return fmt::format("{} waits for {}, which {} holds.", who, object(wait), next);
}

}  // namespace

std::vector<Cycle> find_cycles(const model::Model& model) {
  const Graph graph = build(model);
  std::map<const model::Wait*, bool> has_finding;
  std::vector<Cycle> cycles;
  // In a pool of processes, one idle worker holds a lock of multiprocessing while it reads from a pipe. The other idle
  // workers wait for this lock. They are no part of the ring that contains the reading worker. So the search first
  // looks for rings without such locks.
  for (const std::string_view without : {std::string_view(model::kViaSemaphoreLock), std::string_view()}) {
    for (std::size_t start = 0; start < graph.nodes.size(); ++start) {
      if (has_finding.contains(graph.nodes[start].wait)) continue;
      Cycle cycle = find_shortest(graph, start, false, without);
      if (cycle.empty()) cycle = find_shortest(graph, start, true, without);
      const bool is_new =
          std::ranges::none_of(cycle, [&](const Link& link) { return has_finding.contains(link.wait); });
      if (cycle.empty() || !is_new) continue;
      for (const Link& link : cycle) has_finding[link.wait] = true;
      cycles.push_back(std::move(cycle));
    }
  }
  return cycles;
}

bool has_via(const Cycle& cycle, std::string_view via) {
  return std::ranges::any_of(cycle, [&](const Link& link) { return link.waker->via == via; });
}

bool is_made_of(const Cycle& cycle, const std::set<std::string_view>& vias) {
  return std::ranges::all_of(cycle, [&](const Link& link) { return vias.contains(link.waker->via); });
}

bool has_other_finding(const Evidence& evidence, const Cycle& cycle, const std::vector<Finding>& findings) {
  return std::ranges::any_of(cycle, [&](const Link& link) {
    const auto is_run = [&](const model::HandlerRun& run) { return run.process == link.process; };
    const auto is_touch = [&](const model::Touch& touch) {
      return touch.process == link.process && touch.tid == link.wait->tid && is_open_hazard(touch);
    };
    const auto is_found = [&](const Finding& finding) {
      const bool hangs = finding.outcome == Outcome::kHang || finding.outcome == Outcome::kMayHang;
      if (finding.rule == "lost-task")
        return std::ranges::find(finding.processes, link.process) != finding.processes.end();
      return finding.fork && finding.process == link.process && hangs;
    };
    const model::Model& model = evidence.model();
    return std::ranges::any_of(model.handler_runs, is_run) || std::ranges::any_of(model.touches, is_touch) ||
           std::ranges::any_of(findings, is_found);
  });
}

bool is_of_one_process(const Cycle& cycle) {
  return std::ranges::all_of(cycle, [&](const Link& link) { return link.process == cycle.front().process; });
}

std::string thread(const Evidence& evidence, const Link& link, bool names_process) {
  std::string name = fmt::format("thread {}{}", link.wait->tid, words::quoted(link.wait->name));
  const std::int32_t pid = evidence.process(link.process).pid;
  if (!names_process) return name;
  return pid == link.wait->tid ? fmt::format("process {}{}", pid, words::quoted(link.wait->name))
                               : fmt::format("{} of process {}", name, pid);
}

std::string object(const model::Wait& wait) {
  constexpr std::string_view kStandard = "_IO_stdfile_";
  if (wait.use == model::FutexUse::kMutex && wait.object_name.starts_with(kStandard)) {
    constexpr std::array kStreams{"stdin", "stdout", "stderr"};
    const std::size_t number =
        static_cast<unsigned char>(wait.object_name.substr(kStandard.size())[0]) - std::size_t{'0'};
    if (number < kStreams.size()) return fmt::format("the lock of {}", kStreams[number]);
  }
  if (wait.use == model::FutexUse::kGil) return "Python's GIL";
  if (wait.semaphore_use == model::SemaphoreUse::kLockHeld)
    return fmt::format("a lock of multiprocessing ({})", words::shared_file_name(wait));
  if (!wait.object_name.empty()) return wait.object_name;
  if (wait.kind == WaitKind::kFutex) {
    const std::string at = fmt::format("the {} at {:#x}", own_word(wait), wait.object);
    if (wait.path == "/dev/zero (deleted)") return at + " in anonymous shared memory";  // as /proc/PID/maps calls it
    return wait.path.empty() ? at : fmt::format("{} in {}", at, wait.path);
  }
  return wait.path.empty() ? "a descriptor" : wait.path;
}

Holder holder(const Evidence& evidence, const Cycle& cycle, std::size_t index) {
  const Link& next = cycle[(index + 1) % cycle.size()];
  Holder holder;
  holder.pid = evidence.process(next.process).pid;
  holder.tid = next.wait->tid;
  holder.name = next.wait->name;
  holder.alive = true;
  return holder;
}

void advise_on_gil(Finding& finding) {
  finding.fixes.push_back(
      {"Give the GIL back before waiting for a lock or for the end of a thread in C or C++: Py_BEGIN_ALLOW_THREADS, in "
       "pybind11 py::gil_scoped_release, in Cython `with nogil`."});
  finding.fixes.push_back(
      {"Give every lock of C or C++ back before calling into Python (PyGILState_Ensure(), py::gil_scoped_acquire)."});
}

Culprit culprit_lock(const model::Wait& wait) {
  Culprit culprit;
  culprit.kind = CulpritKind::kLock;
  // The name of the semaphore of a multiprocessing lock is random, and differs from run to run.
  culprit.name =
      wait.semaphore_use == model::SemaphoreUse::kLockHeld ? std::string("a lock of multiprocessing") : object(wait);
  if (!wait.object_name.empty()) culprit.name += fmt::format(" ({})", own_word(wait));
  culprit.library = wait.object_module;
  culprit.address = wait.object;
  return culprit;
}

Culprit culprit_lock(const Evidence& evidence, const Cycle& cycle) {
  // A lock of the program is a better culprit than the GIL. Any lock is a better culprit than the end of a thread or
  // process.
  const auto find_first = [&](std::set<std::string_view> others) {
    const auto is_other = [&](const Link& link) { return others.contains(link.waker->via); };
    return static_cast<std::size_t>(std::ranges::find_if_not(cycle, is_other) - cycle.begin());
  };
  std::size_t index = find_first({"join", "wait4", "GIL"});
  if (index == cycle.size()) index = std::min(find_first({"join", "wait4"}), cycle.size() - 1);
  Culprit culprit = culprit_lock(*cycle[index].wait);
  culprit.holder = holder(evidence, cycle, index);
  culprit.stack = cycle.size() == 1 ? model::Stack{} : cycle[(index + 1) % cycle.size()].wait->stack;
  culprit.is_now = culprit.stack.known();
  return culprit;
}

bool is_reader(const model::Wait& wait) {
  return wait.kind == WaitKind::kPipeRead || wait.kind == WaitKind::kSocketRead;
}

bool is_held_open(const Cycle& cycle) {
  const bool has_reader = std::ranges::any_of(cycle, [](const Link& link) { return is_reader(*link.wait); });
  const bool has_writer = std::ranges::any_of(cycle, [](const Link& link) {
    return link.wait->kind == WaitKind::kPipeWrite || link.wait->kind == WaitKind::kSocketWrite;
  });
  return has_reader && !has_writer && is_made_of(cycle, {"pipe", "socket", "wait4"}) &&
         (cycle.size() == 1 || has_via(cycle, "wait4"));
}

void set_certainty(const Evidence& evidence, const Cycle& cycle, Finding& finding) {
  // A signal handler cannot end the wait for a lock or for the end of a thread, because these calls go on after the
  // handler. Other calls may return to their caller.
  const auto is_lock = [](const Link& link) {
    const std::string& via = link.waker->via;
    return via == "mutex" || via == "rwlock" || via == "join" || via == "GIL";
  };
  const bool has_open = std::ranges::any_of(
      cycle, [&](const Link& link) { return !is_lock(link) && has_way_out(evidence.process(link.process)); });
  if (has_open) return set_may_be_intended(finding);
  const bool is_beyond = std::ranges::all_of(cycle, [&](const Link& link) {
    if (process_goes_on(evidence, link)) return is_beyond_others(cycle, link);
    return is_lock(link) || no_signal_can_wake(evidence.process(link.process));
  });
  finding.harm = is_beyond ? Certainty::kProven : Certainty::kLikely;
  finding.outcome = is_beyond ? Outcome::kHang : Outcome::kMayHang;
  // The counts of the living processes show the holder of a lock of multiprocessing. But another process may have
  // released the lock in place of that holder, and then ended. A further process may have acquired the lock since, and
  // ended, too.
  finding.cause = has_via(cycle, model::kViaSemaphoreLock) ? Certainty::kLikely : Certainty::kProven;
}

bool process_goes_on(const Evidence& evidence, const Link& link) {
  return evidence.process(link.process).liveness == model::Liveness::kAwake;
}

std::string hanging(const Evidence& evidence, const Cycle& cycle) {
  const model::ProcessId id = cycle.front().process;
  return fmt::format("{}{} {}", process_goes_on(evidence, cycle.front()) ? "a thread of " : "", evidence.name(id),
                     hangs(evidence.process(id)));
}

Finding begin_finding(const char* slug, const Evidence& evidence, const Cycle& cycle) {
  Finding finding = Evidence::begin_finding(slug, cycle.front().process, *cycle.front().wait);
  for (const Link& link : cycle) {
    if (std::ranges::find(finding.processes, link.process) == finding.processes.end())
      finding.processes.push_back(link.process);
  }
  set_certainty(evidence, cycle, finding);
  return finding;
}

void tell(const Evidence& evidence, const Cycle& cycle, Finding& finding) {
  for (std::size_t index = 0; index < cycle.size(); ++index) {
    std::string sentence = tell_link(evidence, cycle, index);
    sentence.front() = static_cast<char>(sentence.front() == 't'   ? 'T'
                                         : sentence.front() == 'p' ? 'P'
                                                                   : sentence.front());
    add_sentence(finding, std::move(sentence));
  }
  if (has_via(cycle, "GIL")) {
    add_sentence(
        finding,
        "A thread that waits for the GIL wakes up every few milliseconds, sees that it is still taken, and waits "
        "again. It never goes on, though it does not look asleep.");
  } else if (process_goes_on(evidence, cycle.front())) {
    add_sentence(finding, "Other threads of the process go on: none of them holds what these wait for.");
  } else {
    add_sentence(finding, describe_liveness(evidence.process(cycle.front().process)));
  }
}

}  // namespace forksight::cycles
