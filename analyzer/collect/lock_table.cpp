#include "collect/lock_table.hpp"

#include <algorithm>
#include <utility>

#include "collect/trace_words.hpp"
#include "libc/lock_layout.hpp"

namespace forksight::collect {

model::LockId LockTable::lock_of(const trace::HeldRecord& held, model::ProcessId process) {
  const auto bytes = std::min<std::size_t>(held.memory_bytes, sizeof held.memory);
  const auto state =
      libc::decode_lock(to_model(held.kind), std::span(held.memory).first(bytes), trace_.file().info().libc);
  model::Lock lock;
  lock.address = held.lock;
  lock.kind = to_model(held.kind);
  if (state) {
    lock.type = state->type;
    lock.robust = state->robust;
    lock.priority_inherit = state->priority_inherit;
    lock.process_shared = state->process_shared;
  }
  for (const model::LockId known : locks_[held.lock]) {
    const model::Lock& other = model_.locks[known];
    if (other.kind == lock.kind && other.type == lock.type && other.robust == lock.robust &&
        other.priority_inherit == lock.priority_inherit) {
      return known;
    }
  }
  const model::LockId id = model_.locks.size();
  model_.locks.push_back(std::move(lock));
  locks_[held.lock].push_back(id);
  if (trace_.symbolizes()) {
    trace_.deferred().add_data(
        trace_.modules().image_of(process), held.lock, [id](model::Model & m) -> auto& { return m.locks[id].name; },
        [id](model::Model & m) -> auto& { return m.locks[id].module; });
  }
  return id;
}

}  // namespace forksight::collect
