#include "inspect/lost_pools.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "forksight/abi/thread.hpp"
#include "inspect/places.hpp"

namespace forksight::inspect {
namespace {

// True if the fork was made inside of a parallel region. This is assumed if the parent's forking thread and the child's
// first thread have entered their outermost regions at the same place. A teams region does not count, because its
// threads are no team of workers. If the parent is itself a forked child and waits in a region, the parent may have
// entered this region after the fork. Then the answer is false.
bool is_in_region(const Scene& scene, std::size_t child, const model::Fork& fork) {
  const ThreadFacts& forking = scene.facts_of(fork.process, scene.model.threads[fork.forking_thread].tid);
  if (forking.call.kind == CallKind::kParallel && scene.forks.contains(fork.process)) return false;
  const auto outermost = [](const model::Stack& stack) -> const model::Frame* {
    for (std::size_t i = stack.frames.size(); i-- > 1;) {
      const model::Frame& inner = stack.frames[i - 1];
      if (is_libgomp(inner.module) && !is_libgomp(stack.frames[i].module) && inner.function != "GOMP_teams_reg") {
        return &stack.frames[i];
      }
    }
    return nullptr;
  };
  const model::Frame* const mine = outermost(scene.facts_of(child, scene.model.processes[child].pid).stack);
  const model::Frame* const theirs = outermost(forking.stack);
  return mine != nullptr && theirs != nullptr && mine->module == theirs->module && mine->offset == theirs->offset;
}

// Adds the OpenMP runtimes of the child that make a new pool after a fork. The report names these runtimes, because a
// program does not hang if it uses such a runtime instead of libgomp.
void add_other_runtimes(Scene& scene, std::size_t child, model::Fork& fork) {
  for (const symbols::Module& module : scene.subjects[child].image.modules) {
    const model::Owner owner = model::find_owner_of_library(module.path);
    if (owner != model::Owner::kLibomp && owner != model::Owner::kLibiomp5) continue;
    model::Pool pool;
    pool.kind = owner == model::Owner::kLibomp ? model::RuntimeKind::kLibomp : model::RuntimeKind::kLibiomp5;
    pool.library = module.path;
    pool.rebuilds_itself = true;
    fork.pools.push_back(scene.model.pools.size());
    scene.model.pools.push_back(std::move(pool));
  }
}

// True if a worker sleeps until its next region: its stack has only frames of the runtime and libc.
bool is_idle(const ThreadFacts& facts, const std::string& library) {
  const auto& frames = facts.stack.frames;
  const auto is_runtime = [&](const model::Frame& frame) { return frame.module == library || is_libc(frame.module); };
  return facts.call.word != 0 && std::ranges::all_of(frames, is_runtime);
}

// gomp_team_start() passes each new worker a structure on the stack of the thread that makes the worker
// (libgomp/team.c, gcc 4.2 and later). True if the structure that `thread` was given lies on the stack of the child's
// first thread.
bool is_made_by_forking_thread(const Scene& scene, std::size_t child, const model::Thread& thread) {
  const image::Image& image = scene.subjects[child].image;
  const abi::ThreadLayout* const layout = abi::thread_layout(image.libc.version);
  const auto first = std::ranges::find(image.threads, image.pid, &image::Thread::tid);
  if (layout == nullptr || first == image.threads.end() || !first->registers || !(*first->registers)[symbols::kRsp])
    return false;
  const proc::Mapping* const stack = image.mapping_of(*(*first->registers)[symbols::kRsp]);
  if (thread.pointer == 0 || stack == nullptr) return false;
  const auto argument = image.memory->value<std::uint64_t>(thread.pointer + layout->argument);
  return argument && *argument >= stack->start && *argument < stack->end;
}

// Finds the workers of the forking thread's pool. Each thread that starts regions has a pool of its own. Returns
// nothing if the workers of this pool cannot be distinguished from those of other threads.
std::vector<model::ThreadId> find_workers(const Scene& scene, std::size_t child, const model::Fork& fork,
                                          const std::string& library) {
  std::vector<model::ThreadId> all;
  std::vector<model::ThreadId> own;
  for (const model::ThreadId id : fork.lost_threads) {
    const model::Thread& thread = scene.model.threads[id];
    if (thread.start_library != library) continue;
    all.push_back(id);
    if (is_made_by_forking_thread(scene, child, thread)) own.push_back(id);
  }
  const bool are_makers_known = !own.empty();
  std::vector<model::ThreadId> living;
  // Threads that have ended. Some of them may have ended before the fork: if a pool ends, the memory of its threads
  // remains.
  std::vector<model::ThreadId> ended;
  std::set<std::uint64_t> words;
  const image::Image& parent = scene.subjects[fork.process].image;
  for (const model::ThreadId id : are_makers_known ? own : all) {
    const model::Thread& thread = scene.model.threads[id];
    const bool lives = std::ranges::find(parent.threads, thread.tid, &image::Thread::tid) != parent.threads.end();
    (lives ? living : ended).push_back(id);
    const ThreadFacts& facts = scene.facts_of(fork.process, thread.tid);
    if (lives && is_idle(facts, library)) words.insert(facts.call.word);
  }
  // The idle workers of one pool sleep on one futex word.
  if (!are_makers_known && words.size() > 1) return {};
  return living.empty() ? ended : living;
}

}  // namespace

bool is_in_lost_pool(const StuckCall& call, const model::Fork& fork) {
  if (call.kind == CallKind::kMutex || call.stack.frames.empty()) return false;
  const model::Owner owner = model::find_owner_of_library(call.stack.frames.front().module);
  if (owner == model::Owner::kUnknown || owner == model::Owner::kPython || owner == model::Owner::kStdThread)
    return false;
  return std::ranges::any_of(fork.thread_pools, [&](const model::ThreadPool& pool) {
    return pool.owner == owner && pool.state == model::PoolState::kLost;
  });
}

std::string find_runtime_of_blas(const Scene& scene, std::size_t child, const StuckCall& call,
                                 const model::Fork& fork) {
  if (scene.subjects[child].liveness != model::Liveness::kSpinning || call.stack.frames.empty()) return {};
  const model::Owner owner = model::find_owner_of_library(call.stack.frames.front().module);
  if (!model::spins_for_team(owner)) return {};
  const bool is_in_openmp =
      std::ranges::any_of(call.stack.frames, [](const model::Frame& frame) { return is_libgomp(frame.module); });
  if (owner == model::Owner::kBlis && !is_in_openmp) return {};  // BLIS that is built on pthreads has no pool
  const auto pool = std::ranges::find(fork.thread_pools, model::Owner::kLibgomp, &model::ThreadPool::owner);
  return pool == fork.thread_pools.end() ? std::string() : pool->library;
}

void touch_region(Scene& scene, model::Touch touch, const StuckCall& call, model::Fork& fork) {
  model::Pool pool;
  pool.kind = model::RuntimeKind::kLibgomp;
  pool.library = call.library;
  pool.in_region = is_in_region(scene, touch.process, fork);
  pool.workers = find_workers(scene, touch.process, fork, call.library);
  pool.workers_lost = static_cast<std::uint32_t>(pool.workers.size());
  pool.workers_before = pool.workers_lost;
  pool.workers_total = pool.workers_lost;
  add_other_runtimes(scene, touch.process, fork);
  touch.kind = model::TouchKind::kParallel;
  touch.pool = scene.model.pools.size();
  fork.pools.push_back(scene.model.pools.size());
  scene.model.pools.push_back(std::move(pool));
  scene.model.touches.push_back(std::move(touch));
}

}  // namespace forksight::inspect
