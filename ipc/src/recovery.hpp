// Any survivor finishes or takes back what a dead participant left undone. Several survivors may do it at once. If one
// is killed meanwhile, the next one begins anew. Each step is one compare-exchange, from a word that names the dead
// participant to a word that depends on nothing else. So it happens once, whoever does it.
//
//   slot writing(n, dead)      its buffer queued(n): -> ready(n); else -> skip(n)
//   slot reading(n, dead)      its buffer queued(n): not delivered yet, -> ready(n)
//                              its buffer anything else: delivered, -> empty(n + slots)
//   buffer loaned(g, dead)     -> free(g + 1)
//   buffer held(n, dead)       drop: -> free
//                              redeliver: -> returned(n); too often: -> parked(n)
//   buffer withdrawn(n, dead)  -> parked(n)
//   roles of the place         -> no roles; each role is counted as one that ended by a death
// After the buffers, header::returns is increased, so that consumers search for returned messages. This is always done:
// the dead member may have returned a message, and died before it increased the number. The entry of the participant is
// freed last: until then every survivor begins anew.
#pragma once

#include <cstdint>

#include "ring.hpp"

namespace forksight::ipc::detail {

struct recovered {
  std::uint32_t requeued = 0;  // messages that it had taken, and that another will get
  std::uint32_t lost = 0;      // messages that it had taken, and that are lost
  std::uint32_t parked = 0;
  std::uint32_t skipped = 0;  // positions that it had claimed, and not filled
  std::uint32_t buffers = 0;  // buffers that were given back
};

struct recovery {
  // `dead`: the entry as it was when the death was seen. False: another survivor freed the entry.
  static bool recover(const ring& of, std::uint32_t index, identity dead, std::uint64_t now_ns, recovered& what);

 private:
  static void recover_slot(const ring& of, std::uint32_t index, owner_id dead, identity who, recovered& what);
  static void recover_buffer(const ring& of, std::uint32_t index, owner_id dead, identity who, std::uint64_t now_ns,
                             recovered& what);
  static void recover_roles(const ring& of, std::uint32_t index, identity dead);
};

}  // namespace forksight::ipc::detail
