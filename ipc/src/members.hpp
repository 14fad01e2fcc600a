// Who takes part: our own entry in the table, and whether the others still live.
//
// Another's death is seen by a pidfd, which a reused pid cannot fool once it is open; that it is the right process' is
// told by the start time, read after it was opened. A process that is stopped, however long, is not dead. Of another
// pid namespace nothing is known, and nobody of it is declared dead.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "descriptor.hpp"
#include "forksight/ipc/result.hpp"
#include "recovery.hpp"

namespace forksight::ipc::detail {

enum class life : std::uint8_t { alive, dead, unknown };

// Of a participant, seen from this process. For one look; members keeps descriptors for many.
life life_of(const identity& who, std::uint64_t its_namespace);

class members {
 public:
  members() = default;
  members(const members&) = delete;
  members& operator=(const members&) = delete;

  result<void> join(const ring& of, std::uint32_t roles);
  // Our entry is free for others. Nothing may be ours any more.
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

  // How many are attached, ourselves included.
  std::uint32_t count() const;
  // Is any live participant of that role, ourselves included.
  bool has(std::uint32_t role) const;

  // Looks at every peer, and recovers what the dead have left. Returns how many were dead. One thread at a time: others
  // return 0 at once.
  std::uint32_t sweep();

 private:
  struct peer {
    std::uint64_t word = 0;  // of the identity that the descriptor is for
    descriptor pidfd;
  };
  life look_at(std::uint32_t index, const identity& who);
  void recover(std::uint32_t index, const identity& who);

  ring ring_;
  owner_id me_;
  identity self_;
  std::uint64_t namespace_ = 0;
  std::atomic_flag sweeping_ = ATOMIC_FLAG_INIT;
  std::vector<peer> peers_;
};

}  // namespace forksight::ipc::detail
