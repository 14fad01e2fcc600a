// The layout of a segment: header page | participants | slots | buffers | free map | payload. A segment contains
// offsets, never pointers. It is for 64-bit little-endian machines: x86-64 or AArch64. The ABI hash in the header is
// computed from the sizes and offsets below.
//
// A word of a slot, buffer or participant changes by one compare-exchange, which also stores the new owner. So if a
// process dies between any two instructions, the words name that process, and other processes can recover what it owned
// (recovery.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared_word.hpp"

namespace forksight::ipc::detail {

constexpr std::uint64_t kMagic = 0x31717069746b7366;  // "fsktipq1"
// The major version. Since version 2, each member has a lock instead of a start time. Since 3, a held message occupies
// no slot, and the buffer's entry has the length and the producer of the message. Since 4, waiters have tickets and are
// served in turn. Since 5, each participant's entry counts how many of its owners have ended as a producer or as a
// consumer.
constexpr std::uint16_t kMajor = 5;
// A new minor version gives a meaning to a field of `geometry` that was unused before. A program attaches to a queue of
// its own minor version, or of an earlier one, in which that field is 0. The program refuses a queue of a later minor
// version.
constexpr std::uint16_t kMinor = 0;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;
constexpr std::uint32_t kMaxSlots = 1u << 20;
constexpr std::uint32_t kMaxBuffers = 1u << 20;
constexpr std::uint32_t kMaxParticipants = 255;
constexpr std::size_t kMapWords = 4;  // one bit for each participant
constexpr std::uint32_t kNoBuffer = ~0u;
constexpr std::uint32_t kRememberedConsumers = 6;  // how many of a message's last consumers are recorded

// Names an owner by the index of a participant's entry + 1, and by the incarnation: how many owners that entry had
// before, modulo 256. So a slot or buffer of a former owner is not attributed to the present owner. 0: nobody.
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

// Bits: seq: 32 | owner: 16 | state: 16. No state has the value 0, so a page of zeros is corrupt.
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

// The states of the slot of position n: empty(n) -> writing(n, P) -> ready(n) -> reading(n, C) -> empty(n + slots). P
// is a producer and C a consumer. The index of the slot is n modulo the number of slots. A consumer empties the slot as
// soon as it has the buffer. skip(n): the producer died before it had put a message into the slot.
enum class slot_state : std::uint16_t { empty = 1, writing, ready, reading, skip };
// The states of a buffer of generation g: free(g) -> loaned(g, P) -> queued(n) -> held(n, C) -> free(g + 1).
// returned(n): the consumer died, or the message was requeued. The message has no slot, and the next receive() takes
// it. parked(n): too many consumers died while they held the message, or a consumer has parked it. withdrawn(n, C): C
// has taken the parked message. If C dies, the message is parked again. n is always the position at which the message
// was sent.
enum class buffer_state : std::uint16_t { free = 1, loaned, queued, held, parked, returned, withdrawn };
using slot_word = state_word<slot_state>;
using buffer_word = state_word<buffer_state>;

struct alignas(kLine) slot {
  shared_word<std::uint64_t> word;
  // index of the buffer; the owner writes it in state writing, and reads it in state reading
  shared_word<std::uint32_t> buffer;
};
static_assert(sizeof(slot) == 64 && offsetof(slot, buffer) == 8);

// Only the owner writes the fields other than the word, with one exception: a process that has freed the buffer writes
// since_ns afterwards. The owner reads the fields, and so do processes that recover or inspect the buffer.
struct alignas(kLine) buffer {
  shared_word<std::uint64_t> word;
  shared_word<std::uint32_t> generation;  // g, while the buffer is not free
  shared_word<std::uint32_t> deliveries;
  shared_word<std::uint64_t> since_ns;  // time of the last change of state, on CLOCK_MONOTONIC, exact to a kernel tick
  shared_word<std::uint64_t> length;    // length of the message in bytes
  shared_word<std::uint32_t> producer;  // pid
  // The fields below are only for reports to people.
  shared_word<std::uint32_t> parked_by;  // pid of the consumer that parked the message; 0: no consumer did
  // Pids of the last consumers of the message. The pid of the consumer of delivery d is at index (d - 1) %
  // kRememberedConsumers.
  shared_word<std::uint32_t> consumers[kRememberedConsumers];
};
static_assert(sizeof(buffer) == 64 && offsetof(buffer, since_ns) == 16 && offsetof(buffer, consumers) == 40);

// The states of a participant's entry: free -> joining -> live -> free. As soon as an entry is taken, its word names
// the owner. The nonce distinguishes two owners of one entry that have the same pid and incarnation.
enum class entry_state : std::uint8_t { free, joining, live };
struct identity {
  std::uint32_t pid = 0;    // below 2^22 (PID_MAX_LIMIT of linux/threads.h); in the member's pid namespace
  std::uint32_t nonce = 0;  // 31 bits
  std::uint8_t incarnation = 0;
  entry_state state{};
  // true: the member holds the lock of its entry as long as it lives (member_lock.hpp); false: others cannot notice its
  // death
  bool has_lock = true;

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
constexpr std::size_t kCountedRoles = 2;  // producers and consumers are counted
constexpr std::size_t index_of(std::uint32_t role) { return role == kProducerRole ? 0 : 1; }

// The roles of the owner of an entry, and how many owners of this entry have ended as a producer or as a consumer. All
// of this is in one word. So one step ends a role and counts its end. If a process is killed at that time, the end is
// still counted exactly once. The incarnation says which owner has these roles.
struct role_word {
  std::uint32_t roles = 0;  // 4 bits
  std::uint8_t incarnation = 0;
  // The counts by role. A count that has reached kMostEnded stays there.
  std::uint32_t closed[kCountedRoles]{};  // the role was given up: by close_producer(), or when the handle was closed
  std::uint32_t died[kCountedRoles]{};    // the process died

  static constexpr std::uint32_t kCountBits = 13;
  static constexpr std::uint32_t kMostEnded = (1u << kCountBits) - 1;

  constexpr bool has(std::uint32_t role) const { return (roles & role) != 0; }
  // Returns this word as it is after `which` of these roles have ended.
  constexpr role_word without(std::uint32_t which, bool by_death) const {
    role_word then = *this;
    then.roles = roles & ~which;
    for (const std::uint32_t role : {kProducerRole, kConsumerRole}) {
      if ((roles & which & role) == 0) continue;
      std::uint32_t& count = by_death ? then.died[index_of(role)] : then.closed[index_of(role)];
      if (count < kMostEnded) ++count;
    }
    return then;
  }
  constexpr std::uint64_t bits() const {
    return std::uint64_t{roles & 0xf} | std::uint64_t{incarnation} << 4 | std::uint64_t{closed[0]} << 12 |
           std::uint64_t{died[0]} << 25 | std::uint64_t{closed[1]} << 38 | std::uint64_t{died[1]} << 51;
  }
  static constexpr role_word of(std::uint64_t bits) {
    const auto count = [bits](int shift) { return static_cast<std::uint32_t>(bits >> shift) & kMostEnded; };
    return {static_cast<std::uint32_t>(bits & 0xf),
            static_cast<std::uint8_t>(bits >> 4),
            {count(12), count(38)},
            {count(25), count(51)}};
  }
};
constexpr std::uint32_t kCreatorIndex = 0;    // the creator is the first member, so it has entry 0 with incarnation 0
constexpr std::uint32_t kMaxExpected = 4096;  // must be below kMostEnded, because the counts stop there
constexpr std::uint32_t kMaxGraceMs = 0x7fffffff;

// What a participant may wait for. Each participant has a futex for each kind.
enum class wait_kind : std::uint8_t { message, slot, buffer };
constexpr std::size_t kWaitKinds = 3;

struct alignas(2 * kLine) participant {
  shared_word<std::uint64_t> word;
  shared_word<std::uint64_t> pid_namespace;  // inode of /proc/self/ns/pid; 0: not known; only for reports
  std::uint64_t unused;  // earlier versions with this layout write a time here, and nothing reads it
  shared_word<std::uint32_t> wake[kWaitKinds];
  shared_word<std::uint64_t> sent;
  shared_word<std::uint64_t> received;
  char name[16];
  // Valid only while the participant waits (waiting.hpp): the ticket of the participant, and the time at which the
  // participant got an offer (CLOCK_MONOTONIC; 0: no offer).
  shared_word<std::uint64_t> ticket[kWaitKinds];
  shared_word<std::uint64_t> offered_ns[kWaitKinds];
  shared_word<std::uint64_t> roles;  // role_word
};
static_assert(sizeof(participant) == 128 && offsetof(participant, wake) == 24 && offsetof(participant, name) == 56);
static_assert(offsetof(participant, ticket) == 72 && offsetof(participant, offered_ns) == 96);
static_assert(offsetof(participant, roles) == 120);

// The facts that never change. When a process attaches, it copies these facts to private memory, and checks the copy.
// Only the copy is used.
struct geometry {
  std::uint16_t major, minor;
  std::uint32_t abi;
  std::uint64_t id[2];
  std::uint32_t slots, buffers, participants, max_redeliver;
  std::uint64_t buffer_bytes;
  std::uint64_t participants_at, slots_at, buffers_at, free_map_at, payload_at, bytes;
  std::uint64_t creator_namespace;
  std::uint64_t payload_inode;  // inode of the payload's own file; 0: the payload is in this file
  std::uint32_t creator_uid;
  std::int32_t spin_us;
  std::uint8_t strategy, feed, on_death, full, atfork_handlers, readonly_payload, holds_references, reserved;
  std::uint32_t unlink_at;                               // only for a named queue; 0: never
  std::uint32_t expected_producers, expected_consumers;  // 0: not known
  std::uint32_t grace_ms;
  std::uint32_t unused;
  std::uint32_t crc;  // CRC32C of all bytes before it
};
static_assert(sizeof(geometry) == 152 && offsetof(geometry, crc) == 148);

struct header {
  shared_word<std::uint64_t> magic;  // stored last, when the segment is complete
  geometry shape;
  alignas(kLine) shared_word<std::uint32_t> tail;  // a hint that may be too low: every position below it was claimed
  alignas(kLine) shared_word<std::uint32_t> head;  // a hint that may be too low: every position below it was consumed
  // Increased after messages have become `returned`. 0: no message has ever been returned. A consumer that found no
  // returned message searches again only when this number has changed.
  shared_word<std::uint64_t> returns;
  alignas(kLine) shared_word<std::uint64_t> waiting[kWaitKinds][kMapWords];
  shared_word<std::uint64_t> tickets[kWaitKinds];    // for each kind: the last ticket that a waiter has taken
  alignas(kLine) shared_word<std::uint32_t> status;  // kShutdown, ...
  shared_word<std::uint64_t> last_producer;          // pid of the producer that ended last, | kDied if it died; 0: none
  // For each role: how many times a handle has taken the role. A handle first takes the role, and then increases this
  // number.
  shared_word<std::uint64_t> came[kCountedRoles];
  shared_word<std::uint64_t> last_died[kCountedRoles];  // for each role: the pid of the member that died last; 0: none
  // The state of the creator's handle. 0: it is attached. The creator's pid: the handle was closed, or the creator died
  // as a producer or consumer. pid | kDied: the creator died while it was neither a producer nor a consumer. Such a
  // creator only supervises the others.
  shared_word<std::uint64_t> creator;
  shared_word<std::uint64_t> poisoned;                  // offset + 1 of the corrupt word; 0: the queue is not poisoned
  shared_word<std::uint64_t> poisoned_by;               // pid of the process that found the corrupt word
  alignas(kLine) shared_word<std::uint64_t> looked_ns;  // the time of the last look for dead members
  shared_word<std::uint32_t> look_from;                 // the entry at which the next look begins
  alignas(kLine) shared_word<std::uint64_t> dropped, redelivered, parked, recovered, lost;
  shared_word<std::uint64_t> blocked_send_ns, blocked_receive_ns, high_water;
};
static_assert(offsetof(header, shape) == 8 && offsetof(header, tail) == 192 && sizeof(header) <= kPage);

constexpr std::uint32_t kShutdown = 1;  // no handle can send any more
constexpr std::uint32_t kAborted = 2;   // no handle can receive any more
constexpr std::uint64_t kDied = std::uint64_t{1} << 32;

}  // namespace forksight::ipc::detail
