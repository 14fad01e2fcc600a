// A small ring in ordinary, zeroed memory, for tests that examine its words.
#pragma once

#include "ring.hpp"

namespace forksight::ipc::test {

template <std::uint32_t kSlots, std::uint32_t kBuffers, std::uint32_t kParticipants>
struct local_ring {
  detail::header head{};
  detail::participant participants[kParticipants]{};
  detail::slot slots[kSlots]{};
  detail::buffer buffers[kBuffers]{};
  detail::shared_word<std::uint64_t> free_map[1]{};

  detail::ring view(bool redelivers) {
    detail::ring made;
    made.head = &head;
    made.participants = participants;
    made.slots = slots;
    made.buffers = buffers;
    made.free_map = free_map;
    made.payload = reinterpret_cast<const char*>(buffers);  // not read
    made.slot_count = kSlots;
    made.buffer_count = kBuffers;
    made.participant_count = kParticipants;
    made.buffer_bytes = 64;
    made.max_redeliver = 3;
    made.redelivers = redelivers;
    return made;
  }
  static detail::identity identity_of(std::uint32_t index) {
    return {index + 100, index + 1, 0, detail::entry_state::live};
  }
  // Makes the ring ready for use. All its participant entries are taken.
  detail::ring begin(bool redelivers) {
    const detail::ring made = view(redelivers);
    made.initialise();
    for (std::uint32_t i = 0; i < kParticipants; ++i) participants[i].word.store_relaxed(identity_of(i).bits());
    return made;
  }
};

// claim() for an owner that has claimed no buffer before: it has no hint where to search.
inline detail::step_result claim(const detail::ring& of, detail::owner_id owner, detail::claimed& out) {
  detail::claim_hint none;
  return of.claim(owner, 0, none, out);
}

// take() for an owner that has not searched for messages before: it has no hint.
inline detail::step_result take(const detail::ring& of, detail::owner_id owner, detail::taken& out) {
  detail::take_hint none;
  return of.take(owner, 100 + owner.index(), 0, none, out);
}

}  // namespace forksight::ipc::test
