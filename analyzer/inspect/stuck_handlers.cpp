#include "inspect/stuck_handlers.hpp"

#include <algorithm>
#include <string_view>

#include "inspect/read_lock.hpp"

namespace forksight::inspect {
namespace {

bool is_fork(const model::Frame& frame) {
  const std::string_view name = public_name(frame.function);
  return is_libc(frame.module) &&
         (name == "fork" || name == "libc_fork" || name == "run_prefork_handlers" || name == "run_postfork_handlers");
}

model::HandlerWaitKind wait_kind(CallKind kind) {
  switch (kind) {
    case CallKind::kJoin: return model::HandlerWaitKind::kJoin;
    case CallKind::kConditionWait: return model::HandlerWaitKind::kCondition;
    default: return model::HandlerWaitKind::kLock;
  }
}

// Returns the tid of the thread that has the number `own` in the pid namespace of the process; 0: there is none.
std::int32_t find_tid(const image::Image& image, std::int32_t own) {
  const auto at =
      std::ranges::find_if(image.threads, [own](const image::Thread& one) { return image::own_number(one) == own; });
  return at == image.threads.end() ? 0 : at->tid;
}

}  // namespace

void add_stuck_handler(Scene& scene, std::size_t subject, const image::Thread& thread,
                       std::optional<model::ForkId> fork) {
  const ThreadFacts& facts = scene.facts_of(subject, thread.tid);
  const auto& frames = facts.stack.frames;
  const auto innermost = std::ranges::find_if(frames, is_fork);
  const auto outer = std::find_if_not(innermost, frames.end(), [](const auto& frame) { return is_libc(frame.module); });
  model::HandlerRun run;
  run.process = subject;
  run.tid = thread.tid;
  run.thread = facts.id;
  run.fork_stack.frames.assign(outer, frames.end());
  run.fork_stack.cut = facts.stack.cut;
  // The frame of fork() may belong to the fork that made this process. Then a child handler runs. The frame may also
  // belong to a later fork by this process. Then a prepare handler runs. The code assumes the first case if `fork` is
  // known, the process has only its main thread, and the parent's forking thread has left fork().
  const bool is_child =
      fork && thread.tid == scene.subjects[subject].image.pid && scene.subjects[subject].image.threads.size() == 1 &&
      !scene
           .facts_of(scene.model.forks[*fork].process, scene.model.threads[scene.model.forks[*fork].forking_thread].tid)
           .call.is_in_fork;
  run.phase = is_child ? model::HandlerPhase::kChild : model::HandlerPhase::kPrepare;
  if (is_child) run.fork = fork;
  model::AtforkHandlers handlers;
  if (innermost != frames.begin()) {
    const model::Frame& handler = *(innermost - 1);
    handlers.library = handler.module;
    handlers.functions[static_cast<std::size_t>(run.phase)] = handler.function;
  }
  handlers.has[static_cast<std::size_t>(run.phase)] = true;
  run.handlers = scene.model.handlers.size();
  scene.model.handlers.push_back(std::move(handlers));

  const StuckCall& call = facts.call;
  if (call.kind != CallKind::kUnknown && call.kind != CallKind::kParallel) {
    model::HandlerWait wait;
    wait.kind = wait_kind(call.kind);
    wait.object = call.object;
    wait.timed = call.is_timed;
    // `call.stack` begins with the caller of the call. The frames of fork() and of its callers follow.
    wait.stack = call.stack;
    scene.name_data(subject, call.object, wait.object_name, wait.object_module);
    std::int32_t owner = 0;
    if (call.kind == CallKind::kJoin) owner = static_cast<std::int32_t>(call.value);
    if (call.kind == CallKind::kMutex) {
      const auto state = read_lock(scene.subjects[subject].image, model::LockKind::kMutex, call.object);
      if (state) owner = state->owner;
    }
    owner = find_tid(scene.subjects[subject].image, owner);
    if (const ThreadFacts* const at = scene.find_facts(subject, owner); at != nullptr) {
      wait.owner = at->id;
      wait.owner_stack = at->stack;
    }
    run.waits.push_back(std::move(wait));
  }
  scene.model.handler_runs.push_back(std::move(run));
}

}  // namespace forksight::inspect
