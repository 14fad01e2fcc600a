// Any survivor completes or takes back the unfinished operations of a dead participant. Several survivors may do this
// at the same time. If a survivor is killed meanwhile, the next one starts from the beginning. Each step is one
// compare-exchange: the old word names the dead participant, and all survivors compute the same new word. So each step
// happens exactly once.
//
//   slot writing(n, dead)      if its buffer is queued(n): -> ready(n); otherwise -> skip(n)
//   slot reading(n, dead)      if its buffer is queued(n), the message was not delivered yet: -> ready(n)
//                              otherwise it was delivered: -> empty(n + slots)
//   buffer loaned(g, dead)     -> free(g + 1)
//   buffer held(n, dead)       drop: -> free
//                              redeliver: -> returned(n), or -> parked(n) if it was delivered too often
//   buffer withdrawn(n, dead)  -> parked(n)
//   roles of its entry         -> no roles; each of these roles counts as one that ended by a death
//
// When the buffers are recovered, header::returns is increased, so that consumers search for returned messages. This is
// done even if no message was returned now. The reason is that the dead member may have requeued a message, and may
// have died before it increased header::returns. The entry of the participant is freed last. As long as the entry is
// not freed, other survivors repeat the whole recovery.
#pragma once

#include <cstdint>

#include "ring.hpp"

namespace forksight::ipc::detail {

struct recovered {
  std::uint32_t requeued = 0;  // messages that the dead member had, and that another consumer gets
  std::uint32_t lost = 0;      // messages that the dead member had, and that are lost
  std::uint32_t parked = 0;
  std::uint32_t skipped = 0;  // positions that the dead member had claimed, but not filled
  std::uint32_t buffers = 0;  // buffers of the dead member that were freed
};

struct recovery {
  // `dead`: the content of the entry's word when the death was noticed. Returns false if another survivor has freed the
  // entry.
  static bool recover(const ring& of, std::uint32_t index, identity dead, std::uint64_t now_ns, recovered& what);

 private:
  static void recover_slot(const ring& of, std::uint32_t index, owner_id dead, identity who, recovered& what);
  static void recover_buffer(const ring& of, std::uint32_t index, owner_id dead, identity who, std::uint64_t now_ns,
                             recovered& what);
  static void recover_roles(const ring& of, std::uint32_t index, identity dead);
};

}  // namespace forksight::ipc::detail
