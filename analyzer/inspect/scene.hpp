// What the parts of build_model share: the processes that are looked at, the model that they become, and what is known
// of each of their threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "image/stacks.hpp"
#include "inspect/build_model.hpp"
#include "inspect/stuck_call.hpp"

namespace forksight::inspect {

// One thread as far as it was looked at.
struct ThreadFacts {
  model::ThreadId id = 0;
  model::Stack stack;  // whole; empty: not known
  StuckCall call;
};

class Scene {
 public:
  // Both outlive it. The processes of the model are the subjects, in their order.
  Scene(const std::vector<Subject>& all_subjects, model::Model& into) : subjects(all_subjects), model(into) {}

  const std::vector<Subject>& subjects;
  model::Model& model;
  std::map<std::size_t, model::ForkId> forks;  // by child

  image::Stacks& stacks_of(std::size_t subject);
  CalleeOf callee_of(std::size_t subject);
  bool name_data(std::size_t subject, std::uint64_t address, std::string& name, std::string& module);

  // Null: the process has no such thread.
  const ThreadFacts* find_facts(std::size_t subject, std::int32_t tid) const;
  // Of a thread that the process does not have: nothing.
  const ThreadFacts& facts_of(std::size_t subject, std::int32_t tid) const;
  // What is known already stays.
  void add_facts(std::size_t subject, std::int32_t tid, ThreadFacts facts);

  // By itself, and not for another that is.
  bool is_stuck(std::size_t subject) const;

  // A thread of which no more is known than that it was there.
  model::ThreadId unknown_thread(model::ProcessId process);
  // As the memory of the process has it.
  model::LockId add_lock(std::size_t subject, std::uint64_t address, model::LockKind kind);
  // What could not be read of names, once each.
  void tell_limits();

 private:
  std::map<std::size_t, std::unique_ptr<image::Stacks>> stacks_;
  std::map<std::pair<std::size_t, std::int32_t>, ThreadFacts> facts_;  // by subject and tid
};

}  // namespace forksight::inspect
