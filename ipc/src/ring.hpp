// The state machine of slots and buffers. Any process that maps the memory may have corrupted it, and may die between
// any two instructions. The state machine does not wait, reads no clock and makes no system call.
//
// The life of a message: claim() takes a buffer, publish() puts it at the next position, take() receives it, and
// release() frees it. give_back() frees a buffer that was not sent. park() parks a taken message. withdraw() takes a
// parked message, which is then released, parked again, or requeued. Recovery relies on the order of these steps; see
// recovery.hpp.
//
// The ring consists of the slots. The position of a message is its number in the order of sending, and its slot is the
// position modulo the number of slots. A lap is one round through all slots. A hint is a value that shortens a search,
// and that may be wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "layout.hpp"
#include "member_lock.hpp"

namespace forksight::ipc::detail {

enum class step_result : std::uint8_t {
  done,
  none,     // no free buffer, no free slot, no message
  evicted,  // other members took this one for dead, and recovered what it had
  corrupt,  // ring::corrupt_at is the corrupt word
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

// Where a producer first looks for a buffer: at `next`, which cycles through the first `window` buffers. `window` is 1
// more than the highest index that the producer has needed so far. The hint is private to a handle. Threads of the
// handle may write it at the same time, because it changes only the speed.
struct claim_hint {
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::uint32_t> window{1};
};

// The value that header::returns had before the last search that found no returned message. The hint is private to a
// handle. Threads of the handle may write it at the same time, because each value that one of them writes is correct.
struct take_hint {
  std::atomic<std::uint64_t> searched{0};
};

struct ring {
  header* head = nullptr;
  participant* participants = nullptr;
  slot* slots = nullptr;
  buffer* buffers = nullptr;
  shared_word<std::uint64_t>* free_map = nullptr;  // a hint: if bit b is set, buffer b may be free
  std::uint32_t slot_count = 0;                    // a power of two
  std::uint32_t buffer_count = 0;
  std::uint32_t participant_count = 0;
  std::uint64_t buffer_bytes = 0;
  std::uint32_t max_redeliver = 0;
  bool redelivers = false;
  const char* payload = nullptr;  // the bytes of the first buffer; only their address is used
  member_lock_view lives;         // not used by the state machine; used to find and report deaths

  slot& at(std::uint32_t position) const { return slots[position & (slot_count - 1)]; }
  std::uint32_t map_words() const { return (buffer_count + 63) / 64; }

  // Makes all slots empty and all buffers free. Called before any other process knows the segment.
  void initialise() const;

  step_result claim(owner_id owner, std::uint64_t now_ns, claim_hint& hint, claimed& out) const;
  step_result give_back(owner_id owner, const claimed& buffer, std::uint64_t now_ns) const;
  // On `none`, the caller still owns the buffer.
  step_result publish(owner_id owner, std::uint32_t pid, const claimed& buffer, std::uint64_t length,
                      std::uint64_t now_ns) const;
  // Takes the oldest returned message. If there is none, takes the oldest queued message.
  step_result take(owner_id owner, std::uint32_t pid, std::uint64_t now_ns, take_hint& hint, taken& out) const;
  // Takes only a queued message. This empties its slot.
  step_result take_queued(owner_id owner, std::uint32_t pid, std::uint64_t now_ns, taken& out) const;
  step_result release(owner_id owner, const taken& message, std::uint64_t now_ns) const;

  // `pid`: the consumer's pid, which is recorded.
  step_result park(owner_id owner, std::uint32_t pid, const taken& message, std::uint64_t now_ns) const;
  // Takes the oldest parked message. This does not count as a delivery.
  step_result withdraw(owner_id owner, std::uint64_t now_ns, taken& out) const;
  // Takes the message in that buffer, if it is parked. Otherwise returns `none`.
  step_result withdraw_from(std::uint32_t buffer, owner_id owner, std::uint64_t now_ns, taken& out) const;
  // Gives a withdrawn message to the next receive(). Its number of deliveries starts again at 0.
  step_result requeue(owner_id owner, const taken& message, std::uint64_t now_ns) const;

  // True if no message is queued or returned, and none can come back: no position is being written, no other member is
  // taking a message, and (with redeliver) no other member holds a message.
  bool is_drained(owner_id me) const;

  // has_message(): true if take() would find a message. has_free_buffer(): true if claim() would find a buffer. Both
  // are exact as long as nothing changes. count_available() is not exact: the hints `head` and `tail` may stay too low,
  // and the map may lack bits.
  bool has_message(take_hint& hint) const;
  bool has_free_buffer() const;

  // How many messages, slots or buffers are available, at most `most`. The result may be wrong, so it may only decide
  // who is served first.
  std::uint32_t count_available(wait_kind kind, std::uint32_t most) const;

  // The word that made the last step of the calling thread return `corrupt`.
  static thread_local const void* corrupt_at;

 private:
  friend struct recovery;
  bool can_get_no_more(owner_id me) const;
  bool claim_one(owner_id owner, std::uint64_t now_ns, std::uint32_t index, claimed& out) const;
  step_result free_buffer(std::uint32_t index, buffer_word from, std::uint32_t generation, std::uint64_t now_ns) const;
  step_result found_corrupt(const void* where) const;
  step_result take_from(buffer_state from, buffer_state to, owner_id owner, taken& out) const;
  step_result deliver(std::uint32_t pid, std::uint64_t now_ns, taken& message) const;
  // The maximal number of positions that one call examines before it returns `none`.
  std::uint32_t step_limit() const { return 4 * slot_count + 1024; }
  // The first ready position from `from` on and before `to`; `to` if there is none.
  std::uint32_t first_ready(std::uint32_t from, std::uint32_t to) const;
  void advance(shared_word<std::uint32_t>& hint, std::uint32_t to) const;
  // From the word of one slot, these functions compute the lowest position that may be unclaimed, or unconsumed. A
  // search can go on from there, even if its hint is much too low. Proof, for a slot with position n and a ring of s
  // slots: position n - s of this slot was consumed, so it was claimed. Positions are claimed in order, so all
  // positions up to n - s were claimed. Position p can be claimed only after position p - s was consumed. So all
  // positions up to n - 2 s were consumed.
  std::uint32_t first_unclaimed(slot_word word) const;
  std::uint32_t first_unconsumed(slot_word word) const;
};

}  // namespace forksight::ipc::detail
