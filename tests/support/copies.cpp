#include "support/copies.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace forksight::test {

namespace {

// Larger than each pid and tid of a sample.
constexpr std::int32_t kPids = 10'000;

// Changes the ids, pids and tids of a copy so that they are those of the copy with this number.
class Shift {
 public:
  Shift(const model::Model& one, std::size_t number) : one_(one), number_(number) {}

  void all(model::Model& copy) const {
    for (model::Process& process : copy.processes) shift(process);
    for (model::Thread& thread : copy.threads) {
      process(thread.process);
      pid(thread.tid);
      pid(thread.creator_tid);
    }
    for (model::Pool& pool : copy.pools) threads(pool.workers);
    for (model::Fork& fork : copy.forks) shift(fork);
    for (model::HandlerRun& run : copy.handler_runs) {
      process(run.process);
      pid(run.tid);
      if (run.fork) fork(*run.fork);
      if (run.thread) thread(*run.thread);
      handlers(run.handlers);
      for (model::HandlerWait& wait : run.waits) {
        if (wait.owner) thread(*wait.owner);
      }
    }
    for (model::Touch& touch : copy.touches) {
      of_fork(touch);
      if (touch.pool) pool(*touch.pool);
      for (model::LockReference& reference : touch.lock_references) thread(reference.thread);
    }
    for (model::VforkExit& exit : copy.vfork_exits) {
      process(exit.process);
      pid(exit.child);
      pid(exit.tid);
    }
    for (model::UnflushedOutput& output : copy.unflushed) {
      fork(output.fork);
      for (model::Flush& flush : output.flushes) by_process(flush);
    }
    for (model::Share& share : copy.shares) {
      fork(share.fork);
      process(share.owner);
      for (model::ShareUse& use : share.uses) by_process(use);
    }
    for (model::Draw& draw : copy.draws) by_process(draw);
    for (model::CudaIpcCall& call : copy.cuda_ipc) {
      process(call.process);
      pid(call.tid);
      if (call.handle != 0) call.handle += number_;
    }
    for (model::FileLockUse& use : copy.file_lock_uses) {
      of_fork(use);
      pid(use.owner);
      pid(use.other);
    }
    for (model::ThreadLife& life : copy.lives) {
      process(life.process);
      if (life.creator) this->life(*life.creator);
      if (life.joiner) this->life(*life.joiner);
    }
    for (model::LockOrder& order : copy.lock_orders) {
      life(order.life);
      thread(order.thread);
      lock(order.held);
      lock(order.taken);
    }
    for (model::RacyTouch& touch : copy.racy_touches) {
      of_fork(touch);
      lock(touch.lock);
      thread(touch.holder);
    }
  }

 private:
  void pid(std::int32_t& value) const {
    if (value > 0) value += static_cast<std::int32_t>(number_) * kPids;
  }
  void process(model::ProcessId& id) const { id += number_ * one_.processes.size(); }
  void thread(model::ThreadId& id) const { id += number_ * one_.threads.size(); }
  void lock(model::LockId& id) const { id += number_ * one_.locks.size(); }
  void pool(model::PoolId& id) const { id += number_ * one_.pools.size(); }
  void fork(model::ForkId& id) const { id += number_ * one_.forks.size(); }
  void handlers(model::HandlerId& id) const { id += number_ * one_.handlers.size(); }
  void life(model::LifeId& id) const { id += number_ * one_.lives.size(); }
  void python(std::optional<model::PythonId>& id) const {
    if (id) *id += number_ * one_.python.size();
  }
  void threads(std::vector<model::ThreadId>& ids) const {
    for (model::ThreadId& id : ids) thread(id);
  }

  template <class Act>
  void of_fork(Act& act) const {
    fork(act.fork);
    process(act.process);
    pid(act.tid);
  }
  template <class Act>
  void by_process(Act& act) const {
    if (act.fork) fork(*act.fork);
    process(act.process);
    pid(act.tid);
  }

  void shift(model::Process& one) const {
    pid(one.pid);
    pid(one.ppid);
    for (model::Zombie& zombie : one.zombies) pid(zombie.pid);
    if (one.waits_for) process(*one.waits_for);
    python(one.python);
    for (model::Wait& wait : one.waits) {
      pid(wait.tid);
      pid(wait.owner);
      if (wait.target_pid > 0) wait.target_pid += static_cast<std::int64_t>(number_) * kPids;
      for (model::Waker& waker : wait.wakers) {
        pid(waker.pid);
        pid(waker.tid);
      }
      for (model::Ender& ender : wait.enders) {
        pid(ender.pid);
        pid(ender.tid);
      }
      if (!wait.path.empty() && number_ > 0) wait.path += std::to_string(number_);
      if (wait.semaphore) {
        pid(wait.semaphore->last_pid);
        wait.semaphore->set += static_cast<std::int32_t>(number_);
      }
    }
  }

  void shift(model::Fork& fork) const {
    process(fork.process);
    if (fork.child) process(*fork.child);
    thread(fork.forking_thread);
    threads(fork.lost_threads);
    threads(fork.ended_in_prepare);
    for (model::LostWait& wait : fork.lost_waits) thread(wait.thread);
    for (model::ThreadPool& pool : fork.thread_pools) threads(pool.threads);
    for (model::HandlerTime& time : fork.handlers) handlers(time.handlers);
    for (model::Held& held : fork.held) {
      lock(held.lock);
      thread(held.holder);
    }
    for (model::CallInFlight& call : fork.calls) thread(call.thread);
    for (model::LockedStream& stream : fork.streams) thread(stream.thread);
    for (model::PoolId& id : fork.pools) pool(id);
    python(fork.python);
    if (fork.cuda) pid(fork.cuda->init_tid);
  }

  const model::Model& one_;
  std::size_t number_;
};

template <class Item>
void move_to(std::vector<Item>& all, std::vector<Item>& more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

model::Model copies_of(const model::Model& one, std::size_t count) {
  model::Model all;
  all.command = one.command;
  for (std::size_t number = 0; number < count; ++number) {
    model::Model copy = one;
    Shift(one, number).all(copy);
    move_to(all.processes, copy.processes);
    move_to(all.threads, copy.threads);
    move_to(all.locks, copy.locks);
    move_to(all.pools, copy.pools);
    move_to(all.forks, copy.forks);
    move_to(all.python, copy.python);
    move_to(all.handlers, copy.handlers);
    move_to(all.handler_runs, copy.handler_runs);
    move_to(all.touches, copy.touches);
    move_to(all.vfork_exits, copy.vfork_exits);
    move_to(all.unflushed, copy.unflushed);
    move_to(all.shares, copy.shares);
    move_to(all.draws, copy.draws);
    move_to(all.cuda_ipc, copy.cuda_ipc);
    move_to(all.file_lock_uses, copy.file_lock_uses);
    move_to(all.lives, copy.lives);
    move_to(all.lock_orders, copy.lock_orders);
    move_to(all.racy_touches, copy.racy_touches);
  }
  return all;
}

}  // namespace forksight::test
