// The state machine of slots and buffers. Any user of the memory may have corrupted it, and may die between any two
// instructions. The state machine does not wait, asks no clock and makes no system call.
//
// The life of a message: claim() a buffer, publish() it at the next position, take() it, release() it; or give_back()
// the buffer unsent. A message that was taken can be park()ed instead; then it is withdraw()n, and released, parked
// again or requeue()d. The order of the steps is what recovery relies on; see recovery.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "layout.hpp"
#include "life.hpp"

namespace forksight::ipc::detail {

enum class step_result : std::uint8_t {
  done,
  none,     // no free buffer, no free slot, no message
  evicted,  // others have taken us for dead, and recovered what was ours
  corrupt,  // where: ring::corrupt_at
};

// A buffer that the caller owns.
struct claimed {
  std::uint32_t buffer = kNoBuffer;
  std::uint32_t generation = 0;
};

// A message that the caller has taken or withdrawn.
struct taken {
  std::uint32_t position = 0;
  std::uint32_t buffer = kNoBuffer;
  std::uint32_t generation = 0;
  std::uint32_t producer = 0;    // pid
  std::uint32_t deliveries = 0;  // this one included
  std::uint64_t length = 0;
  bool is_withdrawn = false;
};

// Where a producer looks for a buffer first: in turn among the first `window` buffers, which is as many as it has
// needed at once so far. It is private to a handle. Its threads may write it at once, for nothing is decided by it.
struct claim_hint {
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::uint32_t> window{1};
};

// The value of header::returns before the last search for returned messages that found none. It is private to a handle.
// Its threads may write it at once, because each value that one of them writes is true.
struct take_hint {
  std::atomic<std::uint64_t> searched{0};
};

struct ring {
  header* head = nullptr;
  participant* participants = nullptr;
  slot* slots = nullptr;
  buffer* buffers = nullptr;
  shared_word<std::uint64_t>* free_map = nullptr;  // a hint: bit b: buffer b may be free
  std::uint32_t slot_count = 0;                    // a power of two
  std::uint32_t buffer_count = 0;
  std::uint32_t participant_count = 0;
  std::uint64_t buffer_bytes = 0;
  std::uint32_t max_redeliver = 0;
  bool redelivers = false;
  const char* payload = nullptr;  // of the first buffer; its address is used, not what is there
  life_view lives;                // not used by the state machine, but by those who look for deaths or report them

  slot& at(std::uint32_t position) const { return slots[position & (slot_count - 1)]; }
  std::uint32_t map_words() const { return (buffer_count + 63) / 64; }

  // Makes everything free and empty, before any other process knows of the segment.
  void initialise() const;

  step_result claim(owner_id owner, std::uint64_t now_ns, claim_hint& hint, claimed& out) const;
  step_result give_back(owner_id owner, const claimed& buffer, std::uint64_t now_ns) const;
  // On `none` the buffer is still the caller's.
  step_result publish(owner_id owner, std::uint32_t pid, const claimed& buffer, std::uint64_t length,
                      std::uint64_t now_ns) const;
  // Returned messages first, the oldest of them; then what is queued.
  step_result take(owner_id owner, std::uint32_t pid, std::uint64_t now_ns, take_hint& hint, taken& out) const;
  // Only what is queued: a slot is empty afterwards.
  step_result take_queued(owner_id owner, std::uint32_t pid, std::uint64_t now_ns, taken& out) const;
  step_result release(owner_id owner, const taken& message, std::uint64_t now_ns) const;

  // `pid`: of the consumer, which is recorded.
  step_result park(owner_id owner, std::uint32_t pid, const taken& message, std::uint64_t now_ns) const;
  // Takes the oldest parked message. It is no delivery.
  step_result withdraw(owner_id owner, std::uint64_t now_ns, taken& out) const;
  // The message of that buffer, if it is parked; else `none`.
  step_result withdraw_from(std::uint32_t buffer, owner_id owner, std::uint64_t now_ns, taken& out) const;
  // A withdrawn message goes to the next receive(), with no deliveries so far.
  step_result requeue(owner_id owner, const taken& message, std::uint64_t now_ns) const;

  // Nothing is queued or returned, and nothing can come back: no position is being written, none is being taken by
  // another, and (redeliver) none is held by another.
  bool is_drained(owner_id me) const;

  // The word that made the last step of the calling thread return `corrupt`.
  static thread_local const void* corrupt_at;

 private:
  friend struct recovery;
  bool has_none_to_come(owner_id me) const;
  bool claim_one(owner_id owner, std::uint64_t now_ns, std::uint32_t index, claimed& out) const;
  step_result free_buffer(std::uint32_t index, buffer_word from, std::uint32_t generation, std::uint64_t now_ns) const;
  step_result found_corrupt(const void* where) const;
  step_result take_from(buffer_state from, buffer_state to, owner_id owner, taken& out) const;
  step_result deliver(std::uint32_t pid, std::uint64_t now_ns, taken& message) const;
  // How many positions one call looks at, at most, before it returns `none`.
  std::uint32_t step_limit() const { return 4 * slot_count + 1024; }
  // Of the positions from `from` on and before `to`; `to`: none.
  std::uint32_t first_ready(std::uint32_t from, std::uint32_t to) const;
  void advance(shared_word<std::uint32_t>& hint, std::uint32_t to) const;
  // What the word of one slot tells of all positions. It is enough even if a hint is late by any number of positions.
  // The position that this slot had a lap before was consumed. It was claimed after all positions below it, and each of
  // those was claimed after the position of its own slot another lap before was consumed.
  std::uint32_t first_unclaimed(slot_word word) const;
  std::uint32_t first_unconsumed(slot_word word) const;
};

}  // namespace forksight::ipc::detail
