#include "inspect/lineage.hpp"

#include <algorithm>
#include <optional>

#include "inspect/lost_pthreads.hpp"
#include "inspect/read_lock.hpp"

namespace forksight::inspect {

Namesake find_namesake(const Scene& scene, std::size_t subject, std::int32_t number) {
  // The loop goes from the process to its eldest known ancestor. At each fork, the first thread of the parent either
  // called fork() or was lost. `first_lost` is the first thread of the nearest ancestor whose first thread was lost.
  // nullopt: at all forks so far, the first thread called fork().
  std::optional<Namesake> first_lost;
  std::size_t at = subject;
  for (auto found = scene.forks.find(at); found != scene.forks.end() && number > 0; found = scene.forks.find(at)) {
    const model::Fork& fork = scene.model.forks[found->second];
    const std::size_t parent = fork.process;
    const image::Thread* const there = scene.subjects[parent].image.find_own(number);
    if (const auto* const facts = scene.find_facts(parent, there != nullptr ? there->tid : number)) {
      const model::ThreadId id = facts->id;
      if (id == fork.forking_thread) return first_lost.value_or(Namesake{Ancestry::kSelf, id, found->second});
      const bool is_lost = std::ranges::find(fork.lost_threads, id) != fork.lost_threads.end();
      return is_lost ? Namesake{Ancestry::kLost, id, found->second} : Namesake{};  // else: it began after the fork
    }
    const std::int32_t pid = scene.subjects[parent].image.pid;
    const std::int32_t forking = scene.model.threads[fork.forking_thread].tid;
    if (forking == 0) return {};
    if (!first_lost && forking != pid) {
      const auto* const first = scene.find_facts(parent, pid);
      if (first == nullptr) return {};
      first_lost = Namesake{Ancestry::kLost, first->id, found->second};
    }
    at = parent;
  }
  return {};
}

void name_inherited_owners(Scene& scene, std::size_t subject) {
  const image::Image& image = scene.subjects[subject].image;
  const auto first = std::ranges::find(image.threads, image.pid, &image::Thread::tid);
  if (!scene.forks.contains(subject) || first == image.threads.end() || first->has_ended) return;
  for (model::Wait& wait : scene.model.processes[subject].waits) {
    const bool is_of_stranger = wait.kind == model::WaitKind::kFutex && wait.owner_is_gone && !wait.is_shared;
    if (!is_of_stranger || wait.use != model::FutexUse::kMutex) continue;
    if (wait.object_name.starts_with("_IO_stdfile_")) continue;  // fork() resets the locks of standard streams
    const auto state = read_lock(image, model::LockKind::kMutex, wait.object);
    if (!state || state->checks_owner() || find_namesake(scene, subject, wait.owner).ancestry != Ancestry::kSelf)
      continue;
    wait.owner = image.pid;
    wait.owner_is_gone = false;
    wait.is_inherited = true;
    wait.wakers = {{image.pid, image.pid, -1, "mutex"}};
    wait.wakers_known = true;
  }
}

bool has_lost_none(const Scene& scene, std::size_t subject) {
  for (auto found = scene.forks.find(subject); found != scene.forks.end();
       found = scene.forks.find(scene.model.forks[found->second].process)) {
    const model::Fork& fork = scene.model.forks[found->second];
    if (!fork.lost_threads.empty() || fork.unknown_threads > 0) return false;
  }
  const LostPthreads lost = find_lost_pthreads(scene.subjects[subject].image);
  return lost.is_known && lost.threads.empty();
}

bool may_be_own(Scene& scene, std::size_t child, std::int32_t owner, const model::Fork& fork) {
  const image::Image& image = scene.subjects[child].image;
  // A new thread gets a higher id than the threads before it, unless the ids have wrapped around. So an id above the
  // child's pid belongs to a thread that the child has had. An id between the parent's pid and the child's pid belongs
  // to a thread of the parent.
  if (owner > image.own_pid() || scene.model.threads[fork.forking_thread].tid == 0) return true;
  const bool is_contained = image.own_pid() != image.pid;
  const std::int32_t parent = scene.subjects[fork.process].image.pid;
  if (!is_contained && parent > 0 && owner > parent) return false;
  // A lower id belongs to the parent or to an earlier ancestor. The child's first thread may be a copy of that owner.
  // To rule this out, it must be known for each ancestor which thread forked.
  std::uint64_t known = 0;
  std::int32_t eldest = image.own_pid();
  for (auto at = scene.forks.find(child); at != scene.forks.end(); ++known) {
    const model::Fork& link = scene.model.forks[at->second];
    if (scene.model.threads[link.forking_thread].tid == 0) return true;
    eldest = scene.subjects[link.process].image.own_pid();
    at = scene.forks.find(link.process);
  }
  // An id below the pid of the eldest known ancestor belongs to an ancestor that is not known. The comparison of fork
  // counts below may miss that ancestor, because glibc does not count calls of _Fork().
  if (owner < eldest) return true;
  const auto forks = count_forks(image, scene.stacks_of(child).symbols());
  return !forks || known < *forks;
}

void set_never_had_other_threads(Scene& scene, std::size_t subject) {
  const image::Image& image = scene.subjects[subject].image;
  const bool is_asked = std::ranges::any_of(scene.model.processes[subject].waits, [](const model::Wait& wait) {
    return wait.use == model::FutexUse::kRwlockWrite && wait.owner == 0;
  });
  if (!is_asked || image.threads.size() != 1 || !image.memory) return;
  scene.model.processes[subject].never_had_other_threads = shows_no_other_thread(image);
}

}  // namespace forksight::inspect
