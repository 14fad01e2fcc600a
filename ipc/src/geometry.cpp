// The parts of a segment: computes their offsets from the options, and checks offsets that another process wrote.
#include <bit>

#include "crc32c.hpp"
#include "failure.hpp"
#include "segment.hpp"

namespace forksight::ipc::detail {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 46;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// Computes the offsets only from the counts. So the offsets in a header from another process can be compared with the
// result.
void place(geometry& shape) {
  shape.participants_at = kPage;
  shape.slots_at = shape.participants_at + std::uint64_t{shape.participants} * sizeof(participant);
  shape.buffers_at = shape.slots_at + std::uint64_t{shape.slots} * sizeof(slot);
  shape.free_map_at = shape.buffers_at + std::uint64_t{shape.buffers} * sizeof(buffer);
  const std::uint64_t end = shape.free_map_at + round_up((std::uint64_t{shape.buffers} + 63) / 64 * 8, kLine);
  // A read-only payload is at the start of its own file.
  shape.payload_at = shape.readonly_payload != 0 ? 0 : round_up(end, kPage);
  shape.bytes = shape.readonly_payload != 0 ? round_up(end, kPage)
                                            : round_up(shape.payload_at + shape.buffers * shape.buffer_bytes, kPage);
}

// A sentence about the difference between another layout and this one.
const char* difference_of(std::uint16_t major) {
  switch (major) {
    case 1: return "layout 1 has no locks that show which members live";
    case 2:
      return "layout 2 frees the slot of a message when the consumer releases the message, layout 5 when the consumer "
             "takes it";
    case 3: return "layout 3 does not store the order in which waiting threads came, layout 5 does";
    case 4: return "layout 4 does not count the producers and consumers that have ended, layout 5 does";
    default: return "this version does not know that layout";
  }
}

bool is_count(std::uint64_t value, std::uint64_t least, std::uint64_t most) { return value >= least && value <= most; }

result<void> check_counts(const geometry& shape, errc code) {
  if (!is_count(shape.slots, 2, kMaxSlots) || !std::has_single_bit(shape.slots)) {
    return failure(code, "slots is %u: it can be 2 to %u", shape.slots, kMaxSlots);
  }
  if (!is_count(shape.buffers, 1, kMaxBuffers)) {
    return failure(code, "buffers is %u: it can be 1 to %u", shape.buffers, kMaxBuffers);
  }
  if (!is_count(shape.participants, 2, kMaxParticipants)) {
    return failure(code, "max_participants is %u: it can be 2 to %u", shape.participants, kMaxParticipants);
  }
  if (shape.unlink_at > shape.participants) {
    return failure(code, "unlink_at is %u: there can be %u handles at a time (max_participants)", shape.unlink_at,
                   shape.participants);
  }
  if (shape.expected_producers > kMaxExpected || shape.expected_consumers > kMaxExpected) {
    const bool producers = shape.expected_producers > kMaxExpected;
    return failure(code, "%s is %u: it can be 0 to %u", producers ? "expected_producers" : "expected_consumers",
                   producers ? shape.expected_producers : shape.expected_consumers, kMaxExpected);
  }
  if (shape.grace_ms > kMaxGraceMs) {
    return failure(code, "grace is %u ms: it can be 0 to %u ms", shape.grace_ms, kMaxGraceMs);
  }
  if (!is_count(shape.buffer_bytes, kLine, kMaxBytes) || shape.buffer_bytes % kLine != 0 ||
      shape.buffer_bytes > kMaxBytes / shape.buffers) {
    return failure(code, "buffer_bytes is %llu and buffers is %u: all buffers together can have at most %llu bytes",
                   static_cast<unsigned long long>(shape.buffer_bytes), shape.buffers,
                   static_cast<unsigned long long>(kMaxBytes));
  }
  return {};
}

}  // namespace

std::uint32_t abi_hash(std::size_t pointer_bytes) {
  const std::uint32_t facts[] = {
      sizeof(header),
      sizeof(geometry),
      sizeof(participant),
      sizeof(slot),
      sizeof(buffer),
      static_cast<std::uint32_t>(pointer_bytes),
      offsetof(header, tail),
      offsetof(header, head),
      offsetof(header, returns),
      offsetof(header, waiting),
      offsetof(header, tickets),
      offsetof(header, status),
      offsetof(header, came),
      offsetof(header, creator),
      offsetof(header, looked_ns),
      offsetof(header, dropped),
      offsetof(participant, wake),
      offsetof(participant, ticket),
      offsetof(participant, offered_ns),
      offsetof(participant, roles),
      offsetof(slot, buffer),
      offsetof(buffer, since_ns),
      offsetof(buffer, length),
      offsetof(buffer, consumers),
      std::endian::native == std::endian::little ? 1u : 2u,
      kPage,
      kLine,
  };
  return crc32c(facts, sizeof facts);
}

result<geometry> plan(const options& wanted) {
  geometry shape{};
  shape.major = kMajor;
  shape.minor = kMinor;
  shape.abi = abi_hash();
  if (wanted.slots > kMaxSlots)
    return failure(errc::bad_option, "slots is %u: it can be 2 to %u", wanted.slots, kMaxSlots);
  shape.slots = wanted.slots < 2 ? wanted.slots : std::bit_ceil(wanted.slots);
  shape.buffers = wanted.buffers;
  shape.participants = wanted.max_participants;
  shape.max_redeliver = wanted.max_redeliver;
  shape.buffer_bytes = wanted.buffer_bytes > kMaxBytes ? wanted.buffer_bytes : round_up(wanted.buffer_bytes, kLine);
  shape.strategy = static_cast<std::uint8_t>(wanted.backing);
  shape.feed = static_cast<std::uint8_t>(wanted.feeding);
  shape.on_death = static_cast<std::uint8_t>(wanted.after_death);
  shape.full = static_cast<std::uint8_t>(wanted.when_full);
  shape.spin_us = wanted.spin_us;
  shape.atfork_handlers = wanted.atfork_handlers ? 1 : 0;
  shape.readonly_payload = wanted.readonly_payload ? 1 : 0;
  shape.holds_references = wanted.holds_references ? 1 : 0;
  shape.unlink_at = wanted.unlink_at;
  shape.expected_producers = wanted.expected_producers;
  shape.expected_consumers = wanted.expected_consumers;
  const std::int64_t grace_ms = wanted.grace.count();
  if (grace_ms < 0 || grace_ms > std::int64_t{kMaxGraceMs}) {
    return failure(errc::bad_option, "grace is %lld ms: it can be 0 to %u ms", static_cast<long long>(grace_ms),
                   kMaxGraceMs);
  }
  shape.grace_ms = static_cast<std::uint32_t>(grace_ms);
  if (auto good = check_counts(shape, errc::bad_option); !good) return good.error();
  if (wanted.unlink_at != 0 && wanted.backing != strategy::named) {
    return failure(errc::bad_option,
                   "unlink_at is %u, but only a queue of strategy::named has a name: set backing to strategy::named, "
                   "or unlink_at to 0",
                   wanted.unlink_at);
  }
  if (wanted.readonly_payload && wanted.backing == strategy::named) {
    return failure(errc::bad_option,
                   "readonly_payload is set, but a named file cannot be sealed: set backing to strategy::memfd");
  }
  place(shape);
  return shape;
}

result<void> check(const geometry& shape, std::size_t bytes) {
  if (shape.major != kMajor) {
    return failure(errc::abi_mismatch,
                   "segment: its layout is %u.%u, but this program needs layout %u.%u: %s. Build all programs with one "
                   "version of this library",
                   shape.major, shape.minor, kMajor, kMinor, difference_of(shape.major));
  }
  // A minor version gives a meaning to fields that were 0 before. This version would ignore such a field.
  if (shape.minor > kMinor) {
    return failure(errc::abi_mismatch,
                   "segment: its layout is %u.%u, but this program needs layout %u.%u: it may have options that this "
                   "version does not know. Build all programs with one version of this library",
                   shape.major, shape.minor, kMajor, kMinor);
  }
  if (shape.abi != abi_hash()) {
    return failure(errc::abi_mismatch,
                   "segment: its ABI hash is %08x, but this program has %08x: the programs differ in sizes, offsets, "
                   "byte order, page size or line size. Build all programs alike",
                   shape.abi, abi_hash());
  }
  if (const std::uint32_t crc = crc32c(&shape, offsetof(geometry, crc)); crc != shape.crc) {
    return failure(errc::corrupt,
                   "segment: the CRC of its header is %08x, but the header says %08x: a process has overwritten it, so "
                   "create a new queue",
                   crc, shape.crc);
  }
  if (auto good = check_counts(shape, errc::corrupt); !good) return good;
  if (shape.strategy > 1 || shape.feed > 1 || shape.on_death > 1 || shape.full > 2 || shape.readonly_payload > 1 ||
      shape.holds_references > 1) {
    return failure(errc::corrupt,
                   "segment: an option in its header has a value that does not exist: a process has overwritten it, so "
                   "create a new queue");
  }
  if (shape.reserved != 0 || shape.unused != 0) {
    return failure(
        errc::corrupt,
        "segment: an unused field in its header is not 0: a process has overwritten it, so create a new queue");
  }
  geometry placed = shape;
  place(placed);
  if (placed.participants_at != shape.participants_at || placed.slots_at != shape.slots_at ||
      placed.buffers_at != shape.buffers_at || placed.free_map_at != shape.free_map_at ||
      placed.payload_at != shape.payload_at || placed.bytes != shape.bytes) {
    return failure(errc::corrupt,
                   "segment: the offsets in its header do not follow from its counts: a process has overwritten it, so "
                   "create a new queue");
  }
  if (shape.bytes != bytes) {
    return failure(
        errc::corrupt,
        "segment: has %zu bytes, but its header says %llu: a process has overwritten it, so create a new queue", bytes,
        static_cast<unsigned long long>(shape.bytes));
  }
  return {};
}

}  // namespace forksight::ipc::detail
