#include "inspect/scene.hpp"

#include <algorithm>

#include "inspect/places.hpp"
#include "inspect/read_lock.hpp"

namespace forksight::inspect {

image::Stacks& Scene::stacks_of(std::size_t subject) {
  auto& stacks = stacks_[subject];
  if (!stacks) stacks = std::make_unique<image::Stacks>(subjects[subject].image);
  return *stacks;
}

CalleeOf Scene::callee_of(std::size_t subject) {
  return make_callee_of(subjects[subject].image, stacks_of(subject).symbols());
}

bool Scene::name_data(std::size_t subject, std::uint64_t address, std::string& name, std::string& module) {
  symbols::DataSymbol symbol;
  if (!stacks_of(subject).symbols().find_data(address, symbol)) return false;
  name = std::move(symbol.name);
  module = std::move(symbol.module);
  return true;
}

const ThreadFacts* Scene::find_facts(std::size_t subject, std::int32_t tid) const {
  const auto at = facts_.find({subject, tid});
  return at == facts_.end() ? nullptr : &at->second;
}

const ThreadFacts& Scene::facts_of(std::size_t subject, std::int32_t tid) const {
  static const ThreadFacts nothing;
  const ThreadFacts* const known = find_facts(subject, tid);
  return known == nullptr ? nothing : *known;
}

void Scene::add_facts(std::size_t subject, std::int32_t tid, ThreadFacts facts) {
  facts_.try_emplace({subject, tid}, std::move(facts));
}

bool Scene::is_stuck(std::size_t subject) const {
  const model::Liveness liveness = subjects[subject].liveness;
  return liveness != model::Liveness::kAwake && liveness != model::Liveness::kVictim;
}

model::ThreadId Scene::unknown_thread(model::ProcessId process) {
  model::Thread thread;
  thread.process = process;
  model.threads.push_back(std::move(thread));
  return model.threads.size() - 1;
}

model::LockId Scene::add_lock(std::size_t subject, std::uint64_t address, model::LockKind kind) {
  model::Lock lock;
  lock.address = address;
  lock.kind = kind;
  if (const auto state = read_lock(subjects[subject].image, kind, address)) {
    lock.type = state->type;
    lock.robust = state->robust;
    lock.priority_inherit = state->priority_inherit;
    lock.process_shared = state->process_shared;
  }
  if (!name_data(subject, address, lock.name, lock.module)) {
    lock.place = describe_place(subjects[subject].image, address);
  }
  model.locks.push_back(std::move(lock));
  return model.locks.size() - 1;
}

void Scene::tell_limits() {
  for (const auto& [subject, stacks] : stacks_) {
    if (subjects[subject].is_idle) continue;  // no finding depends on the names of this process
    for (const std::string& limit : stacks->symbols().limits()) {
      if (std::ranges::find(model.limits, limit) == model.limits.end()) model.limits.push_back(limit);
    }
  }
}

}  // namespace forksight::inspect
