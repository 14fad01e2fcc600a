#include "recovery.hpp"

namespace forksight::ipc::detail {
namespace {

// True if the entry still belongs to the dead member. The caller first reads the word of a slot or buffer, which names
// the owner, and then calls this. An incarnation has only 8 bits. So if a survivor was stopped for long, the word may
// name a later member with the same incarnation. The survivor must not recover a slot or buffer of that member.
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

  // The exchange fails if another survivor was faster. That survivor has done the same.
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

// Ends the roles of the dead member. The facts about its death are stored before the roles change. So a survivor that
// sees that the roles have ended also sees these facts.
void recovery::recover_roles(const ring& of, std::uint32_t index, identity dead) {
  participant& place = of.participants[index];
  header& head = *of.head;
  for (std::uint64_t seen = place.roles.load();;) {
    const role_word word = role_word::of(seen);
    const bool is_creator = index == kCreatorIndex && dead.incarnation == 0;
    if (word.incarnation != dead.incarnation || (word.roles == 0 && !is_creator)) return;
    if (place.word.load() != dead.bits()) return;
    const bool is_producer = word.has(kProducerRole), is_consumer = word.has(kConsumerRole);
    if (is_creator) {
      std::uint64_t none = 0;
      (void)head.creator.exchange_if(none, is_producer || is_consumer ? dead.pid : dead.pid | kDied);
    }
    if (is_producer) {
      head.last_producer.store_release(dead.pid | kDied);
      head.last_died[index_of(kProducerRole)].store_release(dead.pid);
    }
    if (is_consumer) head.last_died[index_of(kConsumerRole)].store_release(dead.pid);
    for (const std::uint32_t role : {kProducerRole, kConsumerRole}) {
      // The member may have died after it took its first role, and before it increased `came`.
      std::uint64_t none = 0;
      if (word.has(role)) (void)head.came[index_of(role)].exchange_if(none, 1);
    }
    // The exchange fails if another survivor has done the same, or if the member lives after all and has taken a role.
    if (word.roles == 0 || place.roles.exchange_if(seen, word.without(word.roles, true).bits())) return;
  }
}

bool recovery::recover(const ring& of, std::uint32_t index, identity dead, std::uint64_t now_ns, recovered& what) {
  participant& entry = of.participants[index];
  if (dead.state == entry_state::live) {
    const owner_id owner(index, dead.incarnation);
    for (std::uint32_t i = 0; i < of.slot_count; ++i) recover_slot(of, i, owner, dead, what);
    for (std::uint32_t i = 0; i < of.buffer_count; ++i) recover_buffer(of, i, owner, dead, now_ns, what);
    (void)of.head->returns.fetch_add(1);
    for (auto& kind : of.head->waiting) kind[index / 64].fetch_and(~(std::uint64_t{1} << (index % 64)));
    recover_roles(of, index, dead);
  }
  std::uint64_t seen = dead.bits();
  const identity free{0, 0, static_cast<std::uint8_t>(dead.incarnation + 1), entry_state::free};
  return entry.word.exchange_if(seen, free.bits());
}

}  // namespace forksight::ipc::detail
