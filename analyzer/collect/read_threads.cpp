// Whose threads there were at a fork, and which of them the prepare handlers ended.
#include <algorithm>
#include <map>

#include "collect/trace_reader.hpp"
#include "forksight/trace/handlers.hpp"

namespace forksight::collect {

using trace::RecordType;

void TraceReader::read_gone(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::GoneRecord>();
  const auto fork = find(fixed.fork, RecordType::kFork);
  if (!fork) return;
  const auto tail = record.tail<trace::GoneRecord>();
  for (std::size_t i = 0; i < fixed.count; ++i) {
    const auto thread = find(TraceRecord::element_at<std::uint64_t>(tail, i), RecordType::kThread);
    if (thread) model_.forks[fork->index].gone_threads.push_back(thread->index);
  }
}

namespace {

model::PoolState state_of(const model::ThreadPool& pool) {
  if (pool.threads.empty()) return model::PoolState::kHandled;
  switch (model::info_of(pool.owner).fate) {
    case model::OwnerFate::kRebuilds: return model::PoolState::kRebuilds;
    case model::OwnerFate::kUnneeded: return model::PoolState::kHandled;
    // Its handler ends an idle pool: this one was not.
    case model::OwnerFate::kHandles:
    case model::OwnerFate::kLost: break;
  }
  return model::PoolState::kLost;
}

}  // namespace

void TraceReader::sort_threads_by_owner() {
  for (model::ThreadId id = first_thread_; id < model_.threads.size(); ++id) {
    model_.threads[id].owner = model::find_owner(model_.threads[id]);
  }
  for (model::ForkId id = first_fork_; id < model_.forks.size(); ++id) {
    model::Fork& fork = model_.forks[id];
    std::map<std::pair<model::Owner, std::string>, std::size_t> known;
    const auto pool_of = [&](model::ThreadId thread) -> model::ThreadPool& {
      const model::Thread& of = model_.threads[thread];
      const std::string library(model::find_owning_library(of));
      const auto [at, is_new] = known.try_emplace({of.owner, library}, fork.thread_pools.size());
      if (is_new) fork.thread_pools.push_back({of.owner, library, {}, 0, model::PoolState::kLost});
      ++fork.thread_pools[at->second].before;
      return fork.thread_pools[at->second];
    };
    for (const model::ThreadId thread : fork.lost_threads) pool_of(thread).threads.push_back(thread);
    for (const model::ThreadId thread : fork.gone_threads) pool_of(thread);
    for (model::ThreadPool& pool : fork.thread_pools) pool.state = state_of(pool);
  }
}

}  // namespace forksight::collect
