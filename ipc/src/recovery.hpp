// What a dead participant left undone is finished, or taken back, by any survivor; by several at once; by one that is
// killed meanwhile, and then by the next. Each step is one compare-exchange from a word that names the dead one to a
// word that depends on nothing else, so it happens once, whoever does it.
//
//   slot writing(n, dead)   its buffer queued(n): -> ready(n); else -> skip(n)
//   slot reading(n, dead)   its buffer queued(n): not delivered yet, -> ready(n)
//                           its buffer held(n, dead): drop: buffer -> free, slot -> empty(n + slots)
//                             redeliver: buffer -> queued(n), slot -> ready(n); too often: buffer -> parked(n), slot ->
//                             empty
//                           its buffer anything else: it was released, -> empty(n + slots)
//   buffer loaned(g, dead)  -> free(g + 1)
//   buffer held(n, dead)    -> free; its slot was given on already (drop)
// The entry of the participant is freed last: until then every survivor begins anew.
#pragma once

#include <cstdint>

#include "ring.hpp"

namespace forksight::ipc::detail {

struct recovered {
  std::uint32_t requeued = 0;  // messages that it had taken: another will get them
  std::uint32_t lost = 0;      // messages that it had taken: gone with it
  std::uint32_t parked = 0;
  std::uint32_t skipped = 0;  // positions that it had taken, and not filled
  std::uint32_t buffers = 0;  // given back
};

struct recovery {
  // `dead` is what its entry said when its death was seen. False: somebody else freed the entry.
  static bool recover(const ring& of, std::uint32_t index, identity dead, std::uint64_t now_ns, recovered& what);

 private:
  static void recover_slot(const ring& of, std::uint32_t index, owner_id dead, identity who, std::uint64_t now_ns,
                           recovered& what);
  static void recover_buffer(const ring& of, std::uint32_t index, owner_id dead, identity who, std::uint64_t now_ns,
                             recovered& what);
};

}  // namespace forksight::ipc::detail
