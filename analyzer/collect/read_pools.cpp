#include "collect/read_pools.hpp"

#include "collect/trace_words.hpp"

namespace forksight::collect {

using trace::RecordType;

void PoolReader::read_runtime(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::RuntimeRecord>();
  const model::ProcessId process = trace_.process_of(record);
  const model::PoolId id = model_.pools.size();
  model::Pool pool;
  pool.kind = to_model(fixed.kind);
  pool.library = trace_.modules().image_of(process)->find_path_by_bias(fixed.module_bias);
  pool.in_region = (fixed.flags & trace::kInParallel) != 0;
  pool.rebuilds_itself = (fixed.flags & trace::kRebuildsItself) != 0;
  pool.max_threads = fixed.max_threads;
  pool.workers_before = fixed.pool_before;
  pool.workers_lost = fixed.pool_at_fork;
  pool.workers_total = fixed.workers_total;
  model_.pools.push_back(std::move(pool));
  if (const auto worker = trace_.find(fixed.pool_thread, RecordType::kThread)) {
    trace_.name_stack(
        process,
        threads_.creation_stack(worker->index), [id](model::Model & m) -> auto& { return m.pools[id].made_at; });
  }
  trace_.bind(record, id);
}

void PoolReader::read_cure(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::CureRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  const auto pool = trace_.find(fixed.runtime, RecordType::kRuntime);
  if (!fork || !pool || !is_known(fixed.method) || !is_known(fixed.result)) return;
  model_.pools[pool->index].cure = to_model(fixed.method);
  model_.pools[pool->index].cure_result = to_model(fixed.result);
  const bool by_child = record.pid != model_.processes[model_.forks[fork->index].process].pid;
  if (by_child) trace_.child_of(fork->index, record.pid, record.time_ns);
  if (fixed.used == 0) return;
  const std::size_t id = model_.touches.size();
  model::Touch touch;
  touch.fork = fork->index;
  touch.process = trace_.process_of(record);
  touch.tid = record.tid;
  touch.time_ns = record.time_ns;
  touch.kind = model::TouchKind::kParallel;
  touch.pool = pool->index;
  touch.team = fixed.team;
  touch.clause = fixed.clause;
  touch.cured = true;
  const model::ProcessId process = touch.process;
  model_.touches.push_back(std::move(touch));
  trace_.name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.touches[id].stack; });
}

// Finds the workers of lost pools. A worker is a lost thread that the forking thread created, and whose start routine
// is in the library of the runtime.
void PoolReader::attach_workers() {
  for (model::ForkId id = trace_.first_fork(); id < model_.forks.size(); ++id) {
    const model::Fork& fork = model_.forks[id];
    const std::int32_t forking_tid = model_.threads[fork.forking_thread].tid;
    for (const model::PoolId pool_id : fork.pools) {
      model::Pool& pool = model_.pools[pool_id];
      for (const model::ThreadId thread : fork.lost_threads) {
        const model::Thread& candidate = model_.threads[thread];
        const bool is_worker =
            candidate.creator_tid == forking_tid && !pool.library.empty() && candidate.start_library == pool.library;
        if (is_worker && pool.workers.size() < pool.workers_lost) pool.workers.push_back(thread);
      }
    }
  }
}

}  // namespace forksight::collect
