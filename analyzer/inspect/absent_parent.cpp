// A forked process whose parent cannot be looked at: it has ended, or only the child's core is there. What the child's
// own memory tells stands in for it.
#include <algorithm>

#include "inspect/builder.hpp"
#include "inspect/lost_pthreads.hpp"
#include "inspect/pthreads.hpp"
#include "inspect/std_threads.hpp"

namespace forksight::inspect {
namespace {

class NoMemory : public image::Memory {
 public:
  std::size_t read(std::uint64_t, std::span<std::byte>) const override { return 0; }
};

bool may_be_stuck(const Subject& subject) {
  return subject.liveness != model::Liveness::kAwake && subject.liveness != model::Liveness::kVictim;
}

bool has_parent(const std::vector<Subject>& subjects, const Subject& child) {
  return child.parent && is_same_layout(child.image, subjects[*child.parent].image);
}

// Where somebody else has the child's ppid, the child was given to it when its parent ended.
bool is_somebody_else(const std::vector<Subject>& subjects, const Subject& child) {
  return child.image.ppid <= 1 || std::ranges::any_of(subjects, [&](const Subject& other) {
           return other.image.pid == child.image.ppid && other.image.exe != child.image.exe;
         });
}

}  // namespace

void add_absent_parents(std::vector<Subject>& subjects) {
  const std::size_t count = subjects.size();
  for (std::size_t i = 0; i < count; ++i) {
    Subject& child = subjects[i];
    if (child.is_forked != true || child.is_in_vfork || !child.image.memory || !may_be_stuck(child) ||
        has_parent(subjects, child))
      continue;
    Subject parent;
    parent.is_absent = true;
    parent.image.memory = std::make_shared<NoMemory>();
    parent.image.exe = child.image.exe;
    if (is_somebody_else(subjects, child)) {
      parent.liveness = model::Liveness::kEnded;
    } else {
      parent.image.pid = child.image.ppid;
    }
    child.parent = subjects.size();
    subjects.push_back(std::move(parent));
  }
}

void Builder::add_threads_of_absent(model::Fork& fork) {
  const std::size_t child = *fork.child;
  const LostPthreads lost = find_lost_pthreads(subjects_[child].image);
  const auto add = [&](std::int32_t tid) {
    ThreadFacts facts;
    facts.id = unknown_thread(fork.process);
    model_.threads[facts.id].tid = tid;
    facts_.try_emplace({fork.process, tid}, facts);
    return facts.id;
  };
  // The parent's first thread has its pid; what that is in a pid namespace of its own is not known.
  const bool is_contained = subjects_[child].image.own_pid() != subjects_[child].image.pid;
  const std::int32_t forking = lost.first_forked && !is_contained ? subjects_[fork.process].image.pid : 0;
  fork.forking_thread = add(forking);
  model_.threads[fork.forking_thread].is_main = lost.first_forked;
  for (const LostThread& from : lost.threads) {
    const model::ThreadId id = add(from.tid);
    model::Thread& thread = model_.threads[id];
    thread.pointer = from.pointer;
    thread.is_main = from.start_routine == 0;
    const auto& modules = subjects_[child].image.modules;
    const auto module = std::ranges::find_if(modules, [&](const symbols::Module& one) {
      return from.start_routine >= one.start && from.start_routine < one.end;
    });
    // Under the shim threads start in a function of its own: what they were to run is not known.
    const bool is_of_shim = module != modules.end() && module->path.find("/libforksight.so") != std::string::npos;
    if (module != modules.end() && !is_of_shim) thread.start_library = module->path;
    symbols::CodeSymbol start;
    if (from.start_routine != 0 && !is_of_shim && stacks_of(child).symbols().find_code(from.start_routine, start)) {
      thread.start_routine = start.function;
    }
    thread.owner = model::find_owner(thread);
    const bool is_std = thread.owner == model::Owner::kStdThread;
    if (is_std && find_std_thread_start(subjects_[child].image, stacks_of(child).symbols(), from.argument, start)) {
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

model::ThreadId Builder::other_thread(const model::Fork& fork) {
  const auto only = only_lost_.find(fork.process);
  return only != only_lost_.end() ? only->second : unknown_thread(fork.process);
}

model::ThreadId Builder::add_lost_owner(std::int32_t tid, const model::Fork& fork) {
  const auto only = only_lost_.find(fork.process);
  const bool is_only = only != only_lost_.end() && model_.threads[fork.forking_thread].tid != 0;
  const model::ThreadId id = is_only ? only->second : unknown_thread(fork.process);
  model_.threads[id].tid = tid;
  ThreadFacts facts;
  facts.id = id;
  facts_.try_emplace({fork.process, tid}, facts);
  return id;
}

// Numbers grow: one above the child's own is of a thread that the child has had, unless they began anew meanwhile.
bool Builder::may_be_forking_thread(std::size_t child, std::int32_t owner, const model::Fork& fork) const {
  if (!subjects_[fork.process].is_absent) return false;
  const bool is_known = std::ranges::any_of(
      fork.lost_threads, [&](model::ThreadId id) { return model_.threads[id].tid == owner && owner != 0; });
  return owner > subjects_[child].image.own_pid() || (model_.threads[fork.forking_thread].tid == 0 && !is_known);
}

}  // namespace forksight::inspect
