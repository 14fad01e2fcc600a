#include "diagnose/wait_cycles.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnose/words.hpp"

namespace forksight::cycles {

namespace {

using model::WaitKind;

constexpr std::size_t kMostOrdinaryWaits = 1000;  // threads; a process with more of them is told last

struct Node {
  model::ProcessId process;
  const model::Wait* wait;
};

// An edge leads from a thread that waits to the thread for which it waits, or to a group. The group of a process
// consists of its stuck waits. There may be very many of these waits. With the group, one edge is enough for a wait
// that any thread of the process could end.
struct Edge {
  std::size_t target = 0;  // a vertex: a node, or the number of nodes plus a group
  const model::Waker* waker = nullptr;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<std::vector<Edge>> edges;          // by node
  std::vector<std::vector<std::size_t>> groups;  // the nodes of each process
  std::vector<std::size_t> group_of;             // by node

  std::size_t vertices() const { return nodes.size() + groups.size(); }
  bool is_group(std::size_t vertex) const { return vertex >= nodes.size(); }
  const std::vector<std::size_t>& members(std::size_t vertex) const { return groups[vertex - nodes.size()]; }
  bool leads_to(const Edge& edge, std::size_t node) const {
    return edge.target == node || edge.target == nodes.size() + group_of[node];
  }
};

// True if it is known which thread or process the waker is. False if it is known only that the waker is some thread of
// a process, or some process that has the same memory or timer.
bool is_understood(const model::Waker& waker) {
  return waker.via != "futex" && waker.via != "shared memory" && waker.via != "timerfd" &&
         model::is_waited_for(waker.via);
}

Graph build(const model::Model& model) {
  Graph graph;
  std::map<std::pair<std::string, std::int32_t>, std::size_t> groups;                         // by host and pid
  std::map<std::pair<std::size_t, std::int32_t>, std::vector<std::size_t>> nodes_of_threads;  // by group and tid
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (process.liveness == model::Liveness::kVictim) continue;  // the process for which the victim waits is the cause
    for (const model::Wait& wait : process.waits) {
      if (!wait.is_stuck) continue;
      const std::size_t group = groups.try_emplace({process.host, process.pid}, groups.size()).first->second;
      if (group == graph.groups.size()) graph.groups.emplace_back();
      graph.groups[group].push_back(graph.nodes.size());
      graph.group_of.push_back(group);
      nodes_of_threads[{group, wait.tid}].push_back(graph.nodes.size());
      graph.nodes.push_back({id, &wait});
    }
  }
  graph.edges.resize(graph.nodes.size());
  for (std::size_t from = 0; from < graph.nodes.size(); ++from) {
    const std::string& host = model.processes[graph.nodes[from].process].host;
    for (const model::Waker& waker : graph.nodes[from].wait->wakers) {
      if (!is_understood(waker)) continue;
      const auto group = groups.find({host, waker.pid});
      if (group == groups.end()) continue;
      // The waker is an unknown reader (its tid is 0), because a rwlock does not record its readers. So the only ring
      // that forksight can recognise here is a writer that waits for itself.
      if (waker.via == "rwlock" && waker.tid == 0) {
        graph.edges[from].push_back({from, &waker});
      } else if (waker.tid == 0) {
        graph.edges[from].push_back({graph.nodes.size() + group->second, &waker});
      } else if (const auto threads = nodes_of_threads.find({group->second, waker.tid});
                 threads != nodes_of_threads.end()) {
        for (const std::size_t target : threads->second) graph.edges[from].push_back({target, &waker});
      }
    }
  }
  return graph;
}

// Computes for each vertex the number of its strongly connected component. A ring never leaves a component. This is
// Tarjan's algorithm. It uses no recursion, because a chain of waits may be very long. Edges of the kind `without` are
// left out.
class Components {
 public:
  Components(const Graph& graph, std::string_view without)
      : graph_(graph), without_(without), order_(graph.vertices()), low_(graph.vertices()), of_(graph.vertices()) {
    for (std::size_t vertex = 0; vertex < graph.vertices(); ++vertex) {
      if (order_[vertex] == 0) visit_all_from(vertex);
    }
  }

  std::size_t of(std::size_t vertex) const { return of_[vertex] - 1; }
  // False if no ring can go through the node.
  bool may_have_ring(std::size_t node) const {
    return sizes_[of(node)] > 1 || std::ranges::any_of(graph_.edges[node], [&](const Edge& edge) {
             return edge.target == node && edge.waker->via != without_;
           });
  }

 private:
  struct Visit {
    std::size_t vertex;
    std::size_t next;  // the next edge, or the next member of a group
  };

  std::size_t count_targets(std::size_t vertex) const {
    return graph_.is_group(vertex) ? graph_.members(vertex).size() : graph_.edges[vertex].size();
  }

  void enter(std::size_t vertex) {
    order_[vertex] = low_[vertex] = ++entered_;
    open_.push_back(vertex);
    visits_.push_back({vertex, 0});
  }

  void visit_all_from(std::size_t first) {
    enter(first);
    while (!visits_.empty()) {
      const std::size_t vertex = visits_.back().vertex;
      const std::size_t next = visits_.back().next++;
      if (next == count_targets(vertex)) {
        leave(vertex);
        continue;
      }
      if (!graph_.is_group(vertex) && graph_.edges[vertex][next].waker->via == without_) continue;
      const std::size_t target =
          graph_.is_group(vertex) ? graph_.members(vertex)[next] : graph_.edges[vertex][next].target;
      if (order_[target] == 0) {
        enter(target);
      } else if (of_[target] == 0) {
        low_[vertex] = std::min(low_[vertex], order_[target]);
      }
    }
  }

  void leave(std::size_t vertex) {
    visits_.pop_back();
    if (!visits_.empty()) low_[visits_.back().vertex] = std::min(low_[visits_.back().vertex], low_[vertex]);
    if (low_[vertex] != order_[vertex]) return;
    sizes_.push_back(0);
    for (std::size_t member = graph_.vertices(); member != vertex;) {
      member = open_.back();
      open_.pop_back();
      of_[member] = sizes_.size();
      ++sizes_.back();
    }
  }

  const Graph& graph_;
  std::string_view without_;
  std::vector<std::size_t> order_;  // the number of the visit, from 1; 0: not yet visited
  std::vector<std::size_t> low_;
  std::vector<std::size_t> of_;     // the component, from 1; 0: not yet known
  std::vector<std::size_t> sizes_;  // by component
  std::vector<std::size_t> open_;   // vertices whose component is not yet known
  std::vector<Visit> visits_;
  std::size_t entered_ = 0;
};

// Finds shortest rings. The search goes through a graph in which edges of the kind `without` are left out.
class RingSearch {
 public:
  RingSearch(const Graph& graph, std::string_view without, std::size_t most_steps, const RuleClock* clock)
      : graph_(graph),
        without_(without),
        most_steps_(most_steps),
        clock_(clock),
        components_(graph, without),
        seen_(graph.vertices()),
        from_(graph.nodes.size()) {}

  // Returns the shortest ring through the node `start`; empty if there is none.
  Cycle find(std::size_t start) {
    if (!components_.may_have_ring(start)) return {};
    Cycle cycle = find_shortest(start, false);
    return cycle.empty() ? find_shortest(start, true) : cycle;
  }
  bool is_complete() const { return steps_ < most_steps_ && !is_time_used_up_; }

 private:
  struct Step {
    std::size_t from = 0;
    const model::Waker* waker = nullptr;
  };
  struct Open {
    std::size_t vertex;
    Step step;
    std::size_t next = 0;  // the next member of a group
  };

  // `may_be_itself`: an edge from a thread to itself counts as a ring. find() searches without such rings first,
  // because a waker that names only a process stands for each of its threads, also for the waiting thread itself.
  Cycle find_shortest(std::size_t start, bool may_be_itself) {
    ++search_;
    std::deque<Open> open{{start, {}, 0}};
    while (!open.empty() && is_complete()) {
      const std::optional<Open> next = take(open);
      if (!next || seen_[next->vertex] == search_) continue;
      const std::size_t at = next->vertex;
      if (at == start && next->step.waker != nullptr) continue;
      seen_[at] = search_;
      from_[at] = next->step;
      for (const Edge& edge : graph_.edges[at]) {
        count_step();
        if (edge.waker->via == without_) continue;
        const bool is_of_itself = at == start && !may_be_itself;
        if (!is_of_itself && graph_.leads_to(edge, start)) return ring(start, at, edge.waker);
        if (seen_[edge.target] == search_ || components_.of(edge.target) != components_.of(start)) continue;
        if (graph_.is_group(edge.target)) seen_[edge.target] = search_;
        open.push_back({edge.target, {at, edge.waker}, 0});
      }
    }
    return {};
  }

  // Takes the next node. A group gives its members one after another, because most searches end early. nullopt: the
  // first entry was a group that has no more members.
  std::optional<Open> take(std::deque<Open>& open) {
    count_step();
    Open& first = open.front();
    if (graph_.is_group(first.vertex)) {
      const std::vector<std::size_t>& members = graph_.members(first.vertex);
      if (first.next < members.size()) return Open{members[first.next++], first.step, 0};
      open.pop_front();
      return std::nullopt;
    }
    const Open node = first;
    open.pop_front();
    return node;
  }

  void count_step() {
    constexpr std::size_t kStepsForOneLook = std::size_t{1} << 14U;
    if (++steps_ % kStepsForOneLook == 0 && clock_ != nullptr) is_time_used_up_ = clock_->is_used_up();
  }

  Cycle ring(std::size_t start, std::size_t last, const model::Waker* waker) const {
    Cycle cycle{{graph_.nodes[last].process, graph_.nodes[last].wait, waker}};
    for (std::size_t back = last; back != start;) {
      const Step& step = from_[back];
      back = step.from;
      cycle.push_back({graph_.nodes[back].process, graph_.nodes[back].wait, step.waker});
    }
    std::ranges::reverse(cycle);
    return cycle;
  }

  const Graph& graph_;
  std::string_view without_;
  std::size_t most_steps_;
  const RuleClock* clock_;
  bool is_time_used_up_ = false;
  Components components_;
  std::vector<std::size_t> seen_;  // by vertex: the search that has reached it
  std::vector<Step> from_;         // by node: how the search has reached it
  std::size_t search_ = 0;
  std::size_t steps_ = 0;
};

// Call this for a link whose process goes on. True if the other threads of the process cannot end the wait of this
// link. But other threads can cancel a thread that joins, or a thread whose wait has `may_be_cancelled`. If the ring
// contains the GIL, no other thread really goes on: threads that wait for the GIL wake up again and again, which only
// looks like progress. If the owner of a normal or adaptive mutex locks the mutex again, another thread may unlock it,
// as if it were a semaphore. Such a program is not valid, but it works.
bool is_beyond_others(std::size_t size, bool has_gil, const Link& link) {
  if ((link.waker->via == "join" && !has_gil) || link.wait->may_be_cancelled) return false;
  const model::MutexType type = link.wait->mutex_type;
  return size > 1 || (type != model::MutexType::kNormal && type != model::MutexType::kAdaptive);
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

std::string tell_link(const Evidence& evidence, const Cycle& cycle, std::size_t index, bool names_process) {
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

Cycles find_cycles(const model::Model& model, std::size_t most_steps, const RuleClock* clock) {
  const Graph graph = build(model);
  std::unordered_set<const model::Wait*> has_finding;
  Cycles cycles;
  // In a pool of processes, one idle worker holds a lock of multiprocessing while it reads from a pipe. The other idle
  // workers wait for this lock. The workers that wait for the lock are no part of the ring that contains the reading
  // worker. So the search first looks for rings without such locks.
  for (const std::string_view without : {std::string_view(model::kViaSemaphoreLock), std::string_view()}) {
    RingSearch search(graph, without, most_steps, clock);
    for (std::size_t start = 0; start < graph.nodes.size(); ++start) {
      if (has_finding.contains(graph.nodes[start].wait)) continue;
      Cycle cycle = search.find(start);
      const bool is_new =
          std::ranges::none_of(cycle, [&](const Link& link) { return has_finding.contains(link.wait); });
      if (cycle.empty() || !is_new) continue;
      for (const Link& link : cycle) has_finding.insert(link.wait);
      cycles.found.push_back(std::move(cycle));
    }
    cycles.is_complete = cycles.is_complete && search.is_complete();
  }
  // If the rules use up their time, rings of ordinary processes must have been told.
  const auto is_of_ordinary_processes = [&](const Cycle& cycle) {
    return std::ranges::all_of(cycle, [&](const Link& link) {
      return cycle.size() <= kMostOrdinaryWaits && model.processes[link.process].waits.size() <= kMostOrdinaryWaits;
    });
  };
  std::ranges::stable_partition(cycles.found, is_of_ordinary_processes);
  return cycles;
}

bool has_via(const Cycle& cycle, std::string_view via) {
  return std::ranges::any_of(cycle, [&](const Link& link) { return link.waker->via == via; });
}

bool is_made_of(const Cycle& cycle, const std::set<std::string_view>& vias) {
  return std::ranges::all_of(cycle, [&](const Link& link) { return vias.contains(link.waker->via); });
}

OtherFindings::OtherFindings(const Evidence& evidence) : evidence_(evidence) {
  const model::Model& model = evidence.model();
  for (const model::HandlerRun& run : model.handler_runs) processes_.insert(run.process);
  for (const model::Touch& touch : model.touches) {
    if (is_open_hazard(touch)) threads_.emplace(touch.process, touch.tid);
  }
}

bool OtherFindings::explain(const Cycle& cycle, const std::vector<Finding>& findings) {
  for (; known_ < findings.size(); ++known_) {
    const Finding& finding = findings[known_];
    const bool hangs = finding.outcome == Outcome::kHang || finding.outcome == Outcome::kMayHang;
    if (finding.rule == "lost-task") {
      processes_.insert(finding.processes.begin(), finding.processes.end());
    } else if (finding.rule == "queue-lock-abandoned") {
      // These victims wait for the result of a task. attach_victims() adds all other victims later.
      for (const Victim& victim : finding.victims) {
        const auto ids = evidence_.processes_with_pid(victim.pid);
        processes_.insert(ids.begin(), ids.end());
      }
    } else if (finding.fork && hangs) {
      processes_.insert(finding.process);
    }
  }
  return std::ranges::any_of(cycle, [&](const Link& link) {
    return processes_.contains(link.process) || threads_.contains({link.process, link.wait->tid});
  });
}

bool is_of_one_process(const Cycle& cycle) {
  return std::ranges::all_of(cycle, [&](const Link& link) { return link.process == cycle.front().process; });
}

std::string thread(const Evidence& evidence, const Link& link, bool names_process) {
  std::string name = fmt::format("thread {}{}", link.wait->tid, words::name_in_quotes(link.wait->name));
  const std::int32_t pid = evidence.process(link.process).pid;
  if (!names_process) return name;
  return pid == link.wait->tid ? fmt::format("process {}{}", pid, words::name_in_quotes(link.wait->name))
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
  const bool has_gil = has_via(cycle, "GIL");
  const bool is_beyond = std::ranges::all_of(cycle, [&](const Link& link) {
    if (process_goes_on(evidence, link)) return is_beyond_others(cycle.size(), has_gil, link);
    return is_lock(link) || no_signal_can_wake(evidence.process(link.process));
  });
  finding.harm = is_beyond ? Certainty::kProven : Certainty::kLikely;
  finding.outcome = is_beyond ? Outcome::kHang : Outcome::kMayHang;
  // Each living process counts how often it has acquired a lock of multiprocessing, and the counts show the holder. But
  // another process may have released the lock in place of that holder, and then ended. A further process may have
  // acquired the lock since, and ended, too.
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
  std::unordered_set<model::ProcessId> seen{finding.process};
  for (const Link& link : cycle) {
    if (seen.insert(link.process).second) finding.processes.push_back(link.process);
  }
  set_certainty(evidence, cycle, finding);
  return finding;
}

void tell(const Evidence& evidence, const Cycle& cycle, Finding& finding) {
  const bool names_process = !is_of_one_process(cycle);
  for (std::size_t index = 0; index < cycle.size(); ++index) {
    evidence.check_time();
    std::string sentence = tell_link(evidence, cycle, index, names_process);
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
    add_sentence(finding,
                 "Other threads of the process go on, but none of them holds what the stuck threads wait for.");
  } else {
    add_sentence(finding, evidence.describe_liveness(evidence.process(cycle.front().process)));
  }
}

}  // namespace forksight::cycles
