// Who takes part: our own entry in the table, and whether the others still live, which life.hpp says. A process that is
// stopped, however long, is not dead. Of one without a lock nothing is known, and nobody takes what it has.
#pragma once

#include <atomic>
#include <cstdint>

#include "forksight/ipc/result.hpp"
#include "life.hpp"
#include "recovery.hpp"

namespace forksight::ipc::detail {

// Of a member, by its entry.
life life_of(const life_view& seen, std::uint32_t index, const identity& who);

class members {
 public:
  members() = default;
  ~members() = default;
  members(const members&) = delete;
  members& operator=(const members&) = delete;

  // `segment`: its descriptor. `name`: of a named queue, else empty.
  result<void> join(const ring& of, std::uint32_t roles, int segment, const std::string& name);
  // Our entry is free for others. Nothing may be ours any more. Not in a forked child.
  void leave();

  owner_id me() const { return me_; }
  std::uint32_t pid() const { return self_.pid; }
  std::uint32_t index() const { return me_.index(); }
  participant& entry() const { return ring_.participants[me_.index()]; }
  // Are we still what we were, or did others take us for dead.
  bool is_evicted() const { return entry().word.load() != self_.bits(); }
  // Adds to our roles.
  void take_role(std::uint32_t role);
  void drop_role(std::uint32_t role);

  // How many are attached, ourselves included, but no caretakers.
  std::uint32_t count_users() const;
  // Is any live participant of that role, ourselves included.
  bool has(std::uint32_t role);

  // Looks at every peer, and recovers what the dead have left. Returns how many were dead. One thread at a time: others
  // return 0 at once.
  std::uint32_t sweep();
  // The same, if nobody has looked for 50 ms; at 64 of them at most, and at the next ones the next time.
  std::uint32_t look_if_due(std::uint64_t now_ns);

 private:
  std::uint32_t look_at(std::uint32_t index, bool& can_tell);
  void recover(std::uint32_t index, const identity& who);
  result<void> take_place(std::uint32_t roles, const life_lock& lock);

  ring ring_;
  owner_id me_;
  identity self_;
  void* life_page_ = nullptr;
  std::atomic<std::uint32_t> had_role_[2]{};  // who had it when it was asked last
  std::atomic_flag sweeping_ = ATOMIC_FLAG_INIT;
};

}  // namespace forksight::ipc::detail
