// What a segment looks like: header page | participants | slots | buffers | free map | payload. It holds offsets, never
// pointers. It is for 64-bit little-endian machines, x86-64 or AArch64. The ABI hash of the header is made of the sizes
// and offsets below.
//
// The words of slots, buffers and participants change by one compare-exchange each, which also stores who did it. So a
// process that dies between any two instructions leaves a state that names it (recovery.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared_word.hpp"

namespace forksight::ipc::detail {

constexpr std::uint64_t kMagic = 0x31717069746b7366;  // "fsktipq1"
// 2: a lock for each member, instead of its start time. 3: a held message takes no slot; length and producer of a
// message are in the buffer's entry.
constexpr std::uint16_t kMajor = 3;
constexpr std::uint16_t kMinor = 0;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;
constexpr std::uint32_t kMaxSlots = 1u << 20;
constexpr std::uint32_t kMaxBuffers = 1u << 20;
constexpr std::uint32_t kMaxParticipants = 255;
constexpr std::size_t kMapWords = 4;  // one bit for each participant
constexpr std::uint32_t kNoBuffer = ~0u;
constexpr std::uint32_t kRememberedConsumers = 6;  // of one message, the last ones

// Who owns something: the index of a participant + 1, and how often the entry of that index was given to a new owner.
// So what a former owner left is never attributed to the present one. 0: nobody.
class owner_id {
 public:
  constexpr owner_id() = default;
  constexpr explicit owner_id(std::uint16_t bits) : bits_(bits) {}
  constexpr owner_id(std::uint32_t index, std::uint8_t incarnation)
      : bits_(static_cast<std::uint16_t>(((index + 1) & 0xff) | (std::uint32_t{incarnation} << 8))) {}
  constexpr std::uint16_t bits() const { return bits_; }
  constexpr bool is_nobody() const { return bits_ == 0; }
  constexpr std::uint32_t index() const { return (bits_ & 0xffu) - 1; }
  constexpr std::uint8_t incarnation() const { return static_cast<std::uint8_t>(bits_ >> 8); }
  friend constexpr bool operator==(owner_id, owner_id) = default;

 private:
  std::uint16_t bits_ = 0;
};

// seq: 32 | owner: 16 | state: 16. No state is 0, so a page of zeros is corrupt, not valid.
template <class State>
struct state_word {
  std::uint32_t seq = 0;
  owner_id owner;
  State state{};

  constexpr std::uint64_t bits() const {
    return std::uint64_t{seq} | std::uint64_t{owner.bits()} << 32 | static_cast<std::uint64_t>(state) << 48;
  }
  static constexpr state_word of(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits), owner_id(static_cast<std::uint16_t>(bits >> 32)),
            static_cast<State>(bits >> 48)};
  }
  friend constexpr bool operator==(const state_word&, const state_word&) = default;
};

// The states of the slot of position n, which has the index n modulo the number of slots: empty(n) -> writing(n, P) ->
// ready(n) -> reading(n, C) -> empty(n + slots). A consumer empties the slot as soon as it has the buffer. skip(n): its
// producer died before it had put anything there.
enum class slot_state : std::uint16_t { empty = 1, writing, ready, reading, skip };
// free(g) -> loaned(g, P) -> queued(n) -> held(n, C) -> free(g + 1).
// returned(n): its consumer died; the next receive() takes it, without a slot. A requeued message is returned, too.
// parked(n): it has killed too many consumers, or a consumer has parked it. withdrawn(n, C): C has taken it out of the
// parked ones; if C dies it is parked again. n stays the position at which the message was sent.
enum class buffer_state : std::uint16_t { free = 1, loaned, queued, held, parked, returned, withdrawn };
using slot_word = state_word<slot_state>;
using buffer_word = state_word<buffer_state>;

struct alignas(kLine) slot {
  shared_word<std::uint64_t> word;
  shared_word<std::uint32_t> buffer;  // written by the owner while writing, read while reading
};
static_assert(sizeof(slot) == 64 && offsetof(slot, buffer) == 8);

// All but the word is written by the owner only, and read by the owner or by who recovers it.
struct alignas(kLine) buffer {
  shared_word<std::uint64_t> word;
  shared_word<std::uint32_t> generation;  // g, while not free
  shared_word<std::uint32_t> deliveries;
  shared_word<std::uint64_t> since_ns;  // CLOCK_MONOTONIC, to 4 ms; of the last transition
  shared_word<std::uint64_t> length;    // of the message, in bytes
  shared_word<std::uint32_t> producer;  // pid
  // The rest only tells people what happened.
  shared_word<std::uint32_t> parked_by;                        // pid of the consumer that parked it; 0: none did
  shared_word<std::uint32_t> consumers[kRememberedConsumers];  // pids; of delivery d: at (d - 1) % kRememberedConsumers
};
static_assert(sizeof(buffer) == 64 && offsetof(buffer, since_ns) == 16 && offsetof(buffer, consumers) == 40);

// The states of a participant's entry: free -> joining -> live -> free. From the instant that an entry is taken, its
// word says whose it is. The nonce differs between any two owners of the entry.
enum class entry_state : std::uint8_t { free, joining, live };
struct identity {
  std::uint32_t pid = 0;    // at most 2^22, kernel/pid.h; in the pid namespace of the member
  std::uint32_t nonce = 0;  // 31 bits
  std::uint8_t incarnation = 0;
  entry_state state{};
  bool has_lock = true;  // it holds the lock of its entry as long as it lives (life.hpp); false: its death is not seen

  constexpr std::uint64_t bits() const {
    return std::uint64_t{pid & 0x3fffff} | std::uint64_t{incarnation} << 22 | static_cast<std::uint64_t>(state) << 30 |
           std::uint64_t{nonce & 0x7fffffff} << 32 | std::uint64_t{has_lock} << 63;
  }
  static constexpr identity of(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits & 0x3fffff), static_cast<std::uint32_t>(bits >> 32) & 0x7fffffff,
            static_cast<std::uint8_t>(bits >> 22), static_cast<entry_state>((bits >> 30) & 3), (bits >> 63) != 0};
  }
  friend constexpr bool operator==(const identity&, const identity&) = default;
};

constexpr std::uint32_t kProducerRole = 1;
constexpr std::uint32_t kConsumerRole = 2;
constexpr std::uint32_t kCaretakerRole = 4;

// What may be waited for; each participant has one futex for each.
enum class wait_kind : std::uint8_t { message, slot, buffer };
constexpr std::size_t kWaitKinds = 3;

struct alignas(2 * kLine) participant {
  shared_word<std::uint64_t> word;
  shared_word<std::uint64_t> pid_namespace;  // inode of /proc/self/ns/pid; 0: not known; only to be shown
  shared_word<std::uint64_t> seen_ns;
  shared_word<std::uint32_t> roles;
  shared_word<std::uint32_t> wake[kWaitKinds];
  shared_word<std::uint64_t> sent;
  shared_word<std::uint64_t> received;
  char name[16];
};
static_assert(sizeof(participant) == 128 && offsetof(participant, wake) == 28 && offsetof(participant, name) == 56);

// What never changes. It is copied to private memory and checked when a process attaches, and only the copy is used.
struct geometry {
  std::uint16_t major, minor;
  std::uint32_t abi;
  std::uint64_t id[2];
  std::uint32_t slots, buffers, participants, max_redeliver;
  std::uint64_t buffer_bytes;
  std::uint64_t participants_at, slots_at, buffers_at, free_map_at, payload_at, bytes;
  std::uint64_t creator_namespace;
  std::uint64_t payload_inode;  // of a payload in a file of its own; 0: it is in this one
  std::uint32_t creator_uid;
  std::int32_t spin_us;
  std::uint8_t strategy, feed, on_death, full, atfork_handlers, readonly_payload, holds_references, reserved;
  std::uint32_t unlink_at;  // 0: never; else of a named queue
  std::uint32_t crc;        // CRC32C of all before it
};
static_assert(sizeof(geometry) == 136 && offsetof(geometry, crc) == 132);

struct header {
  shared_word<std::uint64_t> magic;  // stored last
  geometry shape;
  alignas(kLine) shared_word<std::uint32_t> tail;  // a hint, perhaps late: every position below was claimed
  alignas(kLine) shared_word<std::uint32_t> head;  // a hint, perhaps late: every position below was consumed
  // Raised after messages have become `returned`. 0: none ever has. A consumer that has found none of them looks again
  // only when this number has changed.
  shared_word<std::uint64_t> returns;
  alignas(kLine) shared_word<std::uint64_t> waiting[kWaitKinds][kMapWords];
  alignas(kLine) shared_word<std::uint32_t> status;  // kShutdown, ...
  shared_word<std::uint32_t> roles_seen;
  shared_word<std::uint64_t> last_producer;             // pid | kDied
  shared_word<std::uint64_t> poisoned;                  // offset + 1 of what is corrupt
  shared_word<std::uint64_t> poisoned_by;               // pid
  alignas(kLine) shared_word<std::uint64_t> looked_ns;  // when somebody last looked who lives
  shared_word<std::uint32_t> look_from;                 // where the next look begins
  alignas(kLine) shared_word<std::uint64_t> dropped, redelivered, parked, recovered, lost;
  shared_word<std::uint64_t> blocked_send_ns, blocked_receive_ns, high_water;
};
static_assert(offsetof(header, shape) == 8 && offsetof(header, tail) == 192 && sizeof(header) <= kPage);

constexpr std::uint32_t kShutdown = 1;  // nothing more is sent
constexpr std::uint32_t kAborted = 2;   // nothing more is received
constexpr std::uint64_t kDied = std::uint64_t{1} << 32;

}  // namespace forksight::ipc::detail
