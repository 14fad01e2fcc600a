#include "render/scope.hpp"

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace forksight::render {
namespace {

class Scope {
 public:
  explicit Scope(const model::Model& model) : model_(model), is_counted_(model.processes.size()) {
    for (model::ProcessId id = 0; id < model.processes.size(); ++id) by_pid_.emplace(model.processes[id].pid, id);
    for (const model::Fork& fork : model.forks) {
      if (fork.child && lost_threads(fork)) parents_.emplace(*fork.child, fork.process);
    }
  }

  // Counts the process, and the processes on which it depends.
  void count(model::ProcessId id) {
    std::vector<model::ProcessId> open{id};
    while (!open.empty()) {
      const model::ProcessId at = open.back();
      open.pop_back();
      if (is_counted_[at]) continue;
      is_counted_[at] = true;
      const model::Process& process = model_.processes[at];
      if (process.waits_for) open.push_back(*process.waits_for);
      if (const auto parent = parents_.find(at); parent != parents_.end()) open.push_back(parent->second);
      for (const model::Wait& wait : process.waits) {
        for (const model::Waker& waker : wait.wakers) add(waker.pid, open);
        for (const model::Ender& ender : wait.enders) {
          if (ender.kind == model::EnderKind::kProcess) add(ender.pid, open);
        }
      }
    }
  }

  void count_pid(std::int32_t pid) {
    if (const auto known = by_pid_.find(pid); known != by_pid_.end()) count(known->second);
  }

  std::vector<bool> take() { return std::move(is_counted_); }

 private:
  void add(std::int32_t pid, std::vector<model::ProcessId>& open) const {
    if (const auto known = by_pid_.find(pid); known != by_pid_.end()) open.push_back(known->second);
  }

  const model::Model& model_;
  std::vector<bool> is_counted_;
  std::unordered_map<std::int32_t, model::ProcessId> by_pid_;
  std::unordered_map<model::ProcessId, model::ProcessId> parents_;  // by child: forks that lost threads
};

}  // namespace

bool lost_threads(const model::Fork& fork) { return fork.lost_threads.size() + fork.unknown_threads > 0; }

std::vector<bool> find_counted(const model::Model& model, const std::vector<Finding>& findings) {
  Scope scope(model);
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    if (model.processes[id].is_asked_about) scope.count(id);
  }
  for (const Finding& finding : findings) {
    for (const model::ProcessId id : finding.processes) scope.count(id);
    if (finding.culprit.holder) scope.count_pid(finding.culprit.holder->pid);
  }
  return scope.take();
}

}  // namespace forksight::render
