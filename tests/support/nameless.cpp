#include "support/nameless.hpp"

namespace forksight::test {

namespace {

void strip(model::Stack& stack) { stack = model::Stack{}; }

void strip(model::Fork& fork) {
  strip(fork.stack);
  for (model::LostWait& wait : fork.lost_waits) wait.name.clear();
  for (model::CallInFlight& call : fork.calls) strip(call.called_at);
  for (model::Held& held : fork.held) {
    strip(held.acquired_at);
    strip(held.holder_now);
  }
  if (fork.cuda) strip(fork.cuda->init_stack);
}

void strip(model::HandlerRun& run) {
  strip(run.fork_stack);
  for (model::HandlerWait& wait : run.waits) {
    wait.object_name.clear();
    wait.object_module.clear();
    strip(wait.owner_stack);
    strip(wait.stack);
  }
  for (model::HandlerHold& hold : run.holds) {
    hold.object_name.clear();
    hold.object_module.clear();
    strip(hold.taken_at);
  }
}

}  // namespace

model::Model without_names(model::Model model) {
  for (model::Process& process : model.processes) {
    for (model::Wait& wait : process.waits) {
      wait.object_name.clear();
      strip(wait.stack);
    }
  }
  for (model::Thread& thread : model.threads) {
    thread.start_routine.clear();
    thread.body.clear();
    strip(thread.created_at);
  }
  for (model::Lock& lock : model.locks) {
    lock.name.clear();
    lock.module.clear();
  }
  for (model::Touch& touch : model.touches) {
    touch.object_name.clear();
    touch.object_module.clear();
    strip(touch.stack);
  }
  for (model::AtforkHandlers& handlers : model.handlers) {
    for (std::string& function : handlers.functions) function.clear();
  }
  for (model::LockOrder& order : model.lock_orders) {
    strip(order.held_at);
    strip(order.taken_at);
  }
  for (model::RacyTouch& touch : model.racy_touches) {
    strip(touch.stack);
    strip(touch.held_at);
  }
  for (model::UnflushedOutput& output : model.unflushed) {
    for (model::Flush& flush : output.flushes) strip(flush.stack);
  }
  for (model::Share& share : model.shares) {
    for (model::ShareUse& use : share.uses) strip(use.stack);
  }
  for (model::FileLockUse& use : model.file_lock_uses) {
    strip(use.stack);
    strip(use.taken_at);
  }
  for (model::Fork& fork : model.forks) strip(fork);
  for (model::Pool& pool : model.pools) strip(pool.made_at);
  for (model::HandlerRun& run : model.handler_runs) strip(run);
  for (model::VforkExit& exit : model.vfork_exits) strip(exit.stack);
  for (model::Draw& draw : model.draws) strip(draw.stack);
  for (model::CudaIpcCall& call : model.cuda_ipc) strip(call.stack);
  return model;
}

}  // namespace forksight::test
