#include "watch/thread_graph.hpp"

#include <deque>
#include <map>
#include <unordered_map>

namespace forksight::watch {
namespace {

// The numbers of the graph's nodes: first the processes, then the threads of all processes, both in the given order.
struct Layout {
  explicit Layout(const std::vector<ProcessWaits>& processes) {
    std::size_t next = processes.size();
    for (std::size_t process = 0; process < processes.size(); ++process) {
      by_pid.emplace(processes[process].pid, process);
      first_thread.push_back(next);
      for (const ThreadWaits& thread : processes[process].threads)
        by_tid.emplace(std::pair(process, thread.tid), next++);
    }
    count = next;
  }
  // Returns the number of the waker's node. If the waker is not in the graph, returns `count`, which is the number of
  // no node.
  std::size_t node_of(const Waker& waker) const {
    const auto process = by_pid.find(waker.pid);
    if (process == by_pid.end()) return count;
    if (waker.tid == 0) return process->second;
    const auto thread = by_tid.find({process->second, waker.tid});
    return thread == by_tid.end() ? count : thread->second;
  }

  std::unordered_map<std::int32_t, std::size_t> by_pid;
  std::map<std::pair<std::size_t, std::int32_t>, std::size_t> by_tid;
  std::vector<std::size_t> first_thread;
  std::size_t count = 0;
};

std::vector<Node> build(const std::vector<ProcessWaits>& processes, const Layout& layout) {
  std::vector<Node> nodes(layout.count);
  for (std::size_t process = 0; process < processes.size(); ++process) {
    const auto& threads = processes[process].threads;
    nodes[process].awake = threads.empty();
    for (std::size_t index = 0; index < threads.size(); ++index) {
      const std::size_t own = layout.first_thread[process] + index;
      nodes[process].edges.push_back({own, ""});
      nodes[own].awake = threads[index].awake;
      for (const Waker& waker : threads[index].wakers)
        nodes[own].edges.push_back({layout.node_of(waker), waker.via, model::is_waited_for(waker.via)});
    }
  }
  return nodes;
}

// Sets `waits_for`. For a victim, this is the next process on the shortest way to a process with a thread that is a
// root (StuckState::kRoot). For a process in a ring of roots, this is the next process of the ring.
void set_waits_for(const std::vector<ProcessWaits>& processes, const Layout& layout,
                   std::vector<ProcessJudgement>& judgements) {
  struct Way {
    std::size_t from;
    std::string via;
  };
  std::vector<std::vector<Way>> into(processes.size());
  std::deque<std::size_t> open;
  for (std::size_t process = 0; process < processes.size(); ++process) {
    ProcessJudgement& judgement = judgements[process];
    if (judgement.state == StuckState::kRoot) open.push_back(process);
    for (std::size_t index = 0; index < processes[process].threads.size(); ++index) {
      for (const Waker& waker : processes[process].threads[index].wakers) {
        const auto target = layout.by_pid.find(waker.pid);
        const bool is_other = target != layout.by_pid.end() && target->second != process;
        if (!is_other || !model::is_waited_for(waker.via)) continue;
        into[target->second].push_back({process, waker.via});
        if (judgement.threads[index] != StuckState::kRoot || judgement.waits_for) continue;
        judgement.waits_for = target->second;
        judgement.via = waker.via;
      }
    }
  }
  while (!open.empty()) {
    const std::size_t process = open.front();
    open.pop_front();
    for (const Way& way : into[process]) {
      ProcessJudgement& judgement = judgements[way.from];
      if (judgement.state != StuckState::kVictim || judgement.waits_for) continue;
      judgement.waits_for = process;
      judgement.via = way.via;
      open.push_back(way.from);
    }
  }
}

}  // namespace

std::vector<ProcessJudgement> judge_threads(const std::vector<ProcessWaits>& processes) {
  const Layout layout(processes);
  const std::vector<Judgement> nodes = judge(build(processes, layout));
  std::vector<ProcessJudgement> judgements(processes.size());
  for (std::size_t process = 0; process < processes.size(); ++process) {
    ProcessJudgement& judgement = judgements[process];
    judgement.state = nodes[process].state;
    for (std::size_t index = 0; index < processes[process].threads.size(); ++index) {
      const StuckState state = nodes[layout.first_thread[process] + index].state;
      judgement.threads.push_back(state);
      if (judgement.state == StuckState::kVictim && state == StuckState::kRoot) judgement.state = StuckState::kRoot;
    }
  }
  set_waits_for(processes, layout, judgements);
  return judgements;
}

}  // namespace forksight::watch
