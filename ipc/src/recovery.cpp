#include "recovery.hpp"

namespace forksight::ipc::detail {
namespace {

// True if the entry still belongs to the dead member. This is checked after a word that names the owner was read. An
// incarnation has only 8 bits. A survivor that was stopped in between must not take what belongs to a later member by
// now.
bool is_still(const ring& of, owner_id owner, identity dead) {
  return of.participants[owner.index()].word.load() == dead.bits();
}

}  // namespace

void recovery::recover_slot(const ring& of, std::uint32_t index, owner_id dead, identity who, recovered& what) {
  slot& entry = of.slots[index];
  std::uint64_t seen = entry.word.load();
  const slot_word word = slot_word::of(seen);
  if (!(word.owner == dead)) return;
  const std::uint32_t position = word.seq;
  const slot_word ready{position, {}, slot_state::ready};
  const std::uint32_t at = entry.buffer.load_relaxed();
  const bool has_buffer = at < of.buffer_count;
  const buffer_word from = has_buffer ? buffer_word::of(of.buffers[at].word.load()) : buffer_word{};
  if (!is_still(of, dead, who)) return;
  const bool is_queued = from == buffer_word{position, {}, buffer_state::queued};

  // This fails if another survivor was faster. It did the same.
  if (word.state == slot_state::writing) {
    const slot_word skip{position, {}, slot_state::skip};
    if (entry.word.exchange_if(seen, (is_queued ? ready : skip).bits())) what.skipped += is_queued ? 0 : 1;
  } else if (word.state == slot_state::reading) {
    const slot_word empty{position + of.slot_count, {}, slot_state::empty};
    if (entry.word.exchange_if(seen, (is_queued ? ready : empty).bits())) what.requeued += is_queued ? 1 : 0;
  }
}

void recovery::recover_buffer(const ring& of, std::uint32_t index, owner_id dead, identity who, std::uint64_t now_ns,
                              recovered& what) {
  buffer& entry = of.buffers[index];
  std::uint64_t seen = entry.word.load();
  const buffer_word word = buffer_word::of(seen);
  if (!(word.owner == dead)) return;
  const bool is_loaned = word.state == buffer_state::loaned;
  const bool is_held = word.state == buffer_state::held;
  const bool is_withdrawn = word.state == buffer_state::withdrawn;
  if (!is_loaned && !is_held && !is_withdrawn) return;
  if (!is_still(of, dead, who)) return;
  if (is_loaned || (is_held && !of.redelivers)) {
    const std::uint32_t generation = is_loaned ? word.seq : entry.generation.load_relaxed();
    if (of.free_buffer(index, word, generation, now_ns) != step_result::done) return;
    ++what.buffers;
    what.lost += is_held ? 1 : 0;
    return;
  }
  const bool is_parked = is_withdrawn || entry.deliveries.load_relaxed() > of.max_redeliver;
  const buffer_word then{word.seq, {}, is_parked ? buffer_state::parked : buffer_state::returned};
  if (!entry.word.exchange_if(seen, then.bits()) || is_withdrawn) return;
  ++(is_parked ? what.parked : what.requeued);
}

bool recovery::recover(const ring& of, std::uint32_t index, identity dead, std::uint64_t now_ns, recovered& what) {
  participant& entry = of.participants[index];
  if (dead.state == entry_state::live) {
    const owner_id owner(index, dead.incarnation);
    for (std::uint32_t i = 0; i < of.slot_count; ++i) recover_slot(of, i, owner, dead, what);
    for (std::uint32_t i = 0; i < of.buffer_count; ++i) recover_buffer(of, i, owner, dead, now_ns, what);
    (void)of.head->returns.fetch_add(1);
    for (auto& kind : of.head->waiting) kind[index / 64].fetch_and(~(std::uint64_t{1} << (index % 64)));
    // This is stored before the entry is freed. So a member that sees no producer also sees that the last one died.
    if ((entry.roles.load() & kProducerRole) != 0 && entry.word.load() == dead.bits()) {
      of.head->last_producer.store_release(dead.pid | kDied);
    }
  }
  std::uint64_t seen = dead.bits();
  const identity free{0, 0, static_cast<std::uint8_t>(dead.incarnation + 1), entry_state::free};
  return entry.word.exchange_if(seen, free.bits());
}

}  // namespace forksight::ipc::detail
