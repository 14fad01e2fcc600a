// The members of a queue. A member, or participant, is a handle that is attached to the queue. The class
// `members` keeps the entry of one handle in the table of participants, and finds out which other members still live
// (member_lock.hpp). A stopped process is not dead, however long it is stopped. For a member without a lock, nobody can
// know whether it lives, so its buffers are never taken away.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "forksight/ipc/result.hpp"
#include "member_lock.hpp"
#include "recovery.hpp"

namespace forksight::ipc::detail {

// Whether the member with this entry lives.
member_state member_state_of(const member_lock_view& seen, std::uint32_t index, const identity& who);

// How many handles no longer have a role: because they gave it up (closed), or because their process died (died).
struct ended_members {
  std::uint32_t closed = 0, died = 0;
};
ended_members count_ended(const ring& of, std::uint32_t role);

class members {
 public:
  members() = default;
  ~members() = default;
  members(const members&) = delete;
  members& operator=(const members&) = delete;

  // Takes a free entry of the table. If there is none, but the owner of an entry has ended or leaves, waits up to a
  // second until the entry can be taken. `segment`: the descriptor of the segment. `name`: the name of a named queue,
  // else empty.
  result<void> join(const ring& of, std::uint32_t roles, int segment, const std::string& name);
  // Frees the entry of this member. The member must not own a slot or buffer any more. A forked child must not call
  // this.
  void leave();

  owner_id me() const { return me_; }
  std::uint32_t pid() const { return self_.pid; }
  std::uint32_t index() const { return me_.index(); }
  participant& entry() const { return ring_.participants[me_.index()]; }
  // False: nothing shows other members that this member lives. Then only the flock() of the segment's
  // descriptor shows gc() that this member uses the queue.
  bool has_lock() const { return self_.has_lock; }
  // True if other members have taken this one for dead.
  bool is_evicted() const { return entry().word.load() != self_.bits(); }
  // Adds a role to the roles of this member, or removes one.
  void take_role(std::uint32_t role);
  void drop_role(std::uint32_t role);

  // The number of attached members, this one included, without those that only look after parked messages (caretakers).
  std::uint32_t count_users() const;
  // True if any member has that role, this one included.
  bool has(std::uint32_t role);

  // Checks every other member, and recovers the slots and buffers of dead ones. Returns how many were dead. Only one
  // thread sweeps at a time: other threads return 0 at once.
  std::uint32_t sweep();
  // Does nothing if this or another member has called sweep_if_due() in the last 40 ms. Otherwise does the same as
  // sweep(), but checks at most 64 members. The next call, by any member, goes on after these members.
  std::uint32_t sweep_if_due(std::uint64_t now_ns);

 private:
  std::uint32_t look_at(std::uint32_t index, bool& can_tell);
  void recover(std::uint32_t index, const identity& who);
  void begin_roles(std::uint32_t roles);
  bool end_roles(std::uint32_t roles);
  result<void> try_to_join(std::uint32_t roles, int segment, const std::string& name);
  result<void> take_place(std::uint32_t roles, const member_lock& lock);
  // True if an entry of a full table is probably free in a moment.
  bool will_place_be_free() const;
  // Says in words who has the entries of a full table.
  std::string describe_takers() const;

  ring ring_;
  owner_id me_;
  identity self_;
  void* lock_page_ = nullptr;
  std::atomic<std::uint32_t> had_role_[2]{};  // for each role: the index of the member that the last has() found
  std::atomic_flag sweeping_ = ATOMIC_FLAG_INIT;
};

}  // namespace forksight::ipc::detail
