#include "collect/read_threads.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "forksight/trace/handlers.hpp"

namespace forksight::collect {

using trace::RecordType;

void ThreadReader::read_thread(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ThreadRecord>();
  const model::ProcessId process = trace_.process_of(record);
  const ImagePtr& image = trace_.modules().image_of(process);
  const model::ThreadId id = model_.threads.size();
  model::Thread thread;
  thread.process = process;
  thread.tid = fixed.tid;
  thread.name.assign(fixed.name, ::strnlen(fixed.name, sizeof fixed.name));
  thread.creator_tid = fixed.creator_tid;
  thread.start_library = fixed.start_routine == 0 ? std::string() : image->find_path(fixed.start_routine);
  thread.pointer = fixed.thread_pointer;
  thread.is_main = (fixed.flags & trace::kThreadMain) != 0;
  thread.has_ended = (fixed.flags & trace::kThreadEnded) != 0;
  model_.threads.push_back(std::move(thread));
  trace_.name_stack(
      process, fixed.creation_stack, [id](model::Model & m) -> auto& { return m.threads[id].created_at; });
  creation_stacks_[id] = fixed.creation_stack;
  if (trace_.symbolizes() && fixed.start_routine != 0) {
    trace_.deferred().add_code(
        image, fixed.start_routine, [id](model::Model & m) -> auto& { return m.threads[id].start_routine; });
  }
  trace_.bind(record, id);
}

std::uint64_t ThreadReader::creation_stack(model::ThreadId thread) const {
  const auto known = creation_stacks_.find(thread);
  return known == creation_stacks_.end() ? 0 : known->second;
}

void ThreadReader::read_gone(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::GoneRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  if (!fork) return;
  const auto tail = record.tail<trace::GoneRecord>();
  for (std::size_t i = 0; i < fixed.count; ++i) {
    const auto thread = trace_.find(TraceRecord::element_at<std::uint64_t>(tail, i), RecordType::kThread);
    if (thread) model_.forks[fork->index].ended_in_prepare.push_back(thread->index);
  }
}

void ThreadReader::sort_threads_by_owner() {
  for (model::ThreadId id = trace_.first_thread(); id < model_.threads.size(); ++id) {
    model_.threads[id].owner = model::find_owner(model_.threads[id]);
  }
  for (model::ForkId id = trace_.first_fork(); id < model_.forks.size(); ++id) {
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
    for (const model::ThreadId thread : fork.ended_in_prepare) pool_of(thread);
    for (model::ThreadPool& pool : fork.thread_pools) pool.state = model::find_pool_state(pool, fork, model_.handlers);
  }
}

}  // namespace forksight::collect
