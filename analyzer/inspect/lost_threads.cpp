#include "inspect/lost_threads.hpp"

#include <algorithm>

#include "inspect/std_threads.hpp"

namespace forksight::inspect {

// Adds a thread to the model, from what the child's memory still has of the thread.
model::ThreadId LostThreads::add(const model::Fork& fork, const LostThread& from) {
  const std::size_t child = *fork.child;
  const image::Image& image = scene_.subjects[child].image;
  ThreadFacts facts;
  facts.id = scene_.unknown_thread(fork.process);
  model::Thread& thread = scene_.model.threads[facts.id];
  thread.tid = from.tid;
  thread.pointer = from.pointer;
  thread.is_main = from.start_routine == 0;
  const auto module = std::ranges::find_if(image.modules, [&](const symbols::Module& one) {
    return from.start_routine >= one.start && from.start_routine < one.end;
  });
  // Under the shim, threads start in a function of the shim. So it is not known which function the program passed to
  // pthread_create().
  const bool is_of_shim = module != image.modules.end() && module->path.find("/libforksight.so") != std::string::npos;
  if (module != image.modules.end() && !is_of_shim) thread.start_library = module->path;
  symbols::Symbolizer& symbolizer = scene_.stacks_of(child).symbols();
  symbols::CodeSymbol start;
  if (from.start_routine != 0 && !is_of_shim && symbolizer.find_code(from.start_routine, start)) {
    thread.start_routine = start.function;
  }
  thread.owner = model::find_owner(thread);
  const bool is_std = thread.owner == model::Owner::kStdThread;
  if (is_std && find_std_thread_start(image, symbolizer, from.argument, start)) {
    thread.start_routine = start.function;
    thread.start_library = start.module;
    thread.body = start.function;
  }
  if (from.tid != 0) scene_.add_facts(fork.process, from.tid, facts);
  return facts.id;
}

void LostThreads::add_ended_since(model::Fork& fork) {
  const image::Image& parent = scene_.subjects[fork.process].image;
  const LostPthreads found = find_lost_pthreads(scene_.subjects[*fork.child].image);
  // The child's memory may also have the data of a thread that an earlier fork lost. Such a thread was never a thread
  // of the parent, and the parent may use its stack for another thread. So this function adds threads only for the
  // first fork since the start of the program.
  const bool is_first = has_only_one_fork(*fork.child, found) || has_only_one_bypass(fork, found);
  fork.may_have_lost_more = !is_first || !found.is_complete;
  if (!is_first) return;
  for (const LostThread& lost : found.threads) {
    if (has_ended_since(parent, lost.pointer, lost.start_routine)) fork.lost_threads.push_back(add(fork, lost));
  }
}

bool LostThreads::has_only_one_fork(std::size_t child, const LostPthreads& lost) {
  return !lost.bypassed && count_forks(scene_.subjects[child].image, scene_.stacks_of(child).symbols()) == 1U;
}

// True if libc counted no fork, and the parent either was not forked, or has called exec since then. Then the parent's
// memory had no lost threads.
bool LostThreads::has_only_one_bypass(const model::Fork& fork, const LostPthreads& lost) {
  const std::size_t child = *fork.child;
  return lost.bypassed && scene_.subjects[fork.process].is_forked == false &&
         count_forks(scene_.subjects[child].image, scene_.stacks_of(child).symbols()) == 0U;
}

void LostThreads::add_of_absent_parent(model::Fork& fork) {
  const std::size_t child = *fork.child;
  const LostPthreads lost = find_lost_pthreads(scene_.subjects[child].image);
  // The tid of the parent's first thread is the parent's pid. If the child is in a pid namespace of its own, the
  // parent's pid in that namespace is not known.
  const bool is_contained = scene_.subjects[child].image.own_pid() != scene_.subjects[child].image.pid;
  ThreadFacts forking;
  forking.id = scene_.unknown_thread(fork.process);
  model::Thread& thread = scene_.model.threads[forking.id];
  const Subject& parent = scene_.subjects[fork.process];
  thread.tid = lost.first_forked && !is_contained && !parent.is_supposed ? parent.image.pid : 0;
  thread.is_main = lost.first_forked;
  fork.forking_thread = forking.id;
  scene_.add_facts(fork.process, thread.tid, forking);
  for (const LostThread& from : lost.threads) fork.lost_threads.push_back(add(fork, from));
  const bool is_first = has_only_one_fork(child, lost);
  scene_.model.processes[fork.process].is_some_ancestor = !is_first;
  fork.is_parent_supposed = scene_.subjects[fork.process].is_supposed;
  fork.may_have_lost_more = !lost.is_complete;
  if (lost.is_complete && lost.threads.size() == 1 && lost.threads.front().tid == 0) {
    only_lost_.emplace(fork.process, fork.lost_threads.front());
  }
}

model::ThreadId LostThreads::other_thread(const model::Fork& fork) {
  const auto only = only_lost_.find(fork.process);
  const bool is_of_parent = !scene_.model.processes[fork.process].is_some_ancestor;
  return only != only_lost_.end() && is_of_parent ? only->second : scene_.unknown_thread(fork.process);
}

model::ThreadId LostThreads::add_lost_owner(std::int32_t tid, const model::Fork& fork) {
  const auto only = only_lost_.find(fork.process);
  // A new thread gets a higher id than the threads before it. So an id above the parent's pid belongs to a thread of
  // the parent, and not to one that an earlier ancestor had.
  const bool is_of_parent =
      !scene_.model.processes[fork.process].is_some_ancestor || tid > scene_.subjects[fork.process].image.pid;
  const bool is_only = only != only_lost_.end() && is_of_parent && scene_.model.threads[fork.forking_thread].tid != 0;
  const model::ThreadId id = is_only ? only->second : scene_.unknown_thread(fork.process);
  scene_.model.threads[id].tid = tid;
  ThreadFacts facts;
  facts.id = id;
  scene_.add_facts(fork.process, tid, facts);
  return id;
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
