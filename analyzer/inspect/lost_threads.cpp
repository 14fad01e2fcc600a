#include "inspect/lost_threads.hpp"

#include <algorithm>

#include "inspect/lost_pthreads.hpp"
#include "inspect/std_threads.hpp"

namespace forksight::inspect {

void LostThreads::add_of_absent_parent(model::Fork& fork) {
  const std::size_t child = *fork.child;
  const LostPthreads lost = find_lost_pthreads(scene_.subjects[child].image);
  const auto add = [&](std::int32_t tid) {
    ThreadFacts facts;
    facts.id = scene_.unknown_thread(fork.process);
    scene_.model.threads[facts.id].tid = tid;
    scene_.add_facts(fork.process, tid, facts);
    return facts.id;
  };
  // The parent's first thread has its pid; what that is in a pid namespace of its own is not known.
  const bool is_contained = scene_.subjects[child].image.own_pid() != scene_.subjects[child].image.pid;
  const std::int32_t forking = lost.first_forked && !is_contained ? scene_.subjects[fork.process].image.pid : 0;
  fork.forking_thread = add(forking);
  scene_.model.threads[fork.forking_thread].is_main = lost.first_forked;
  for (const LostThread& from : lost.threads) {
    const model::ThreadId id = add(from.tid);
    model::Thread& thread = scene_.model.threads[id];
    thread.pointer = from.pointer;
    thread.is_main = from.start_routine == 0;
    const auto& modules = scene_.subjects[child].image.modules;
    const auto module = std::ranges::find_if(modules, [&](const symbols::Module& one) {
      return from.start_routine >= one.start && from.start_routine < one.end;
    });
    // Under the shim threads start in a function of its own: what they were to run is not known.
    const bool is_of_shim = module != modules.end() && module->path.find("/libforksight.so") != std::string::npos;
    if (module != modules.end() && !is_of_shim) thread.start_library = module->path;
    symbols::CodeSymbol start;
    if (from.start_routine != 0 && !is_of_shim &&
        scene_.stacks_of(child).symbols().find_code(from.start_routine, start)) {
      thread.start_routine = start.function;
    }
    thread.owner = model::find_owner(thread);
    const bool is_std = thread.owner == model::Owner::kStdThread;
    if (is_std &&
        find_std_thread_start(scene_.subjects[child].image, scene_.stacks_of(child).symbols(), from.argument, start)) {
      thread.start_routine = start.function;
      thread.start_library = start.module;
      thread.body = start.function;
    }
    fork.lost_threads.push_back(id);
  }
  if (lost.is_complete && lost.threads.size() == 1 && lost.threads.front().tid == 0) {
    only_lost_.emplace(fork.process, fork.lost_threads.front());
  }
}

model::ThreadId LostThreads::other_thread(const model::Fork& fork) {
  const auto only = only_lost_.find(fork.process);
  return only != only_lost_.end() ? only->second : scene_.unknown_thread(fork.process);
}

model::ThreadId LostThreads::add_lost_owner(std::int32_t tid, const model::Fork& fork) {
  const auto only = only_lost_.find(fork.process);
  const bool is_only = only != only_lost_.end() && scene_.model.threads[fork.forking_thread].tid != 0;
  const model::ThreadId id = is_only ? only->second : scene_.unknown_thread(fork.process);
  scene_.model.threads[id].tid = tid;
  ThreadFacts facts;
  facts.id = id;
  scene_.add_facts(fork.process, tid, facts);
  return id;
}

// Numbers grow: one above the child's own is of a thread that the child has had, unless they began anew meanwhile.
bool LostThreads::may_be_forking_thread(std::size_t child, std::int32_t owner, const model::Fork& fork) const {
  if (!scene_.subjects[fork.process].is_absent) return false;
  const bool is_known = std::ranges::any_of(
      fork.lost_threads, [&](model::ThreadId id) { return scene_.model.threads[id].tid == owner && owner != 0; });
  return owner > scene_.subjects[child].image.own_pid() ||
         (scene_.model.threads[fork.forking_thread].tid == 0 && !is_known);
}

std::optional<model::ThreadId> LostThreads::find_only(const model::Fork& fork,
                                                      const std::function<bool(const model::Thread&)>& is_it) const {
  std::optional<model::ThreadId> found;
  for (const model::ThreadId id : fork.lost_threads) {
    if (!is_it(scene_.model.threads[id])) continue;
    if (found) return std::nullopt;
    found = id;
  }
  return found;
}

}  // namespace forksight::inspect
