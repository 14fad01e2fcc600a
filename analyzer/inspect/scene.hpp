// The data that the parts of build_model share: the processes to be explained, the model that they become, and the
// facts about each of their threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "image/stacks.hpp"
#include "inspect/build_model.hpp"
#include "inspect/lock_copies.hpp"
#include "inspect/stuck_call.hpp"

namespace forksight::inspect {

// What is known about one thread.
struct ThreadFacts {
  model::ThreadId id = 0;
  model::Stack stack;  // the whole stack; empty: not known
  StuckCall call;
};

class Scene {
 public:
  // Both arguments must outlive the scene. The processes of the model are the subjects, in the same order.
  Scene(const std::vector<Subject>& all_subjects, model::Model& into) : subjects(all_subjects), model(into) {}

  const std::vector<Subject>& subjects;
  model::Model& model;
  std::map<std::size_t, model::ForkId> forks;  // the fork that made each child, by the child's index
  LockCopies lock_copies;

  image::Stacks& stacks_of(std::size_t subject);
  CalleeOf callee_of(std::size_t subject);
  bool name_data(std::size_t subject, std::uint64_t address, std::string& name, std::string& module);

  // Null: the process has no such thread.
  const ThreadFacts* find_facts(std::size_t subject, std::int32_t tid) const;
  // Returns empty facts for a thread that the process does not have.
  const ThreadFacts& facts_of(std::size_t subject, std::int32_t tid) const;
  // Does nothing if the facts about the thread are already known.
  void add_facts(std::size_t subject, std::int32_t tid, ThreadFacts facts);

  // True if the process is stuck itself; false if it only waits for another stuck process.
  bool is_stuck(std::size_t subject) const;

  // Adds a thread of which it is only known that it existed.
  model::ThreadId unknown_thread(model::ProcessId process);
  // Adds the lock, in the state that the memory of the process shows.
  model::LockId add_lock(std::size_t subject, std::uint64_t address, model::LockKind kind);
  // Adds to the limits of the model the sentences that say which names could not be read. Adds no sentence twice.
  void tell_limits();

 private:
  std::map<std::size_t, std::unique_ptr<image::Stacks>> stacks_;
  std::map<std::pair<std::size_t, std::int32_t>, ThreadFacts> facts_;  // by subject and tid
};

}  // namespace forksight::inspect
