#include "ring.hpp"

#include <bit>

namespace forksight::ipc::detail {

thread_local const void* ring::corrupt_at = nullptr;

namespace {

// How far position `of` is ahead of `than`; negative: behind. Positions wrap.
std::int32_t ahead(std::uint32_t of, std::uint32_t than) { return static_cast<std::int32_t>(of - than); }

std::uint32_t later(std::uint32_t one, std::uint32_t other) { return ahead(one, other) > 0 ? one : other; }

}  // namespace

step_result ring::found_corrupt(const void* where) const {
  corrupt_at = where;
  return step_result::corrupt;
}

void ring::advance(shared_word<std::uint32_t>& hint, std::uint32_t to) const {
  // Two who store at once may leave the lower one: still true, found out by the next.
  if (ahead(to, hint.load_relaxed()) > 0) hint.store_relaxed(to);
}

std::uint32_t ring::first_unclaimed(slot_word word) const { return word.seq - slot_count + 1; }
std::uint32_t ring::first_unconsumed(slot_word word) const { return word.seq - 2 * slot_count + 1; }

void ring::initialise() const {
  for (std::uint32_t i = 0; i < slot_count; ++i) {
    slots[i].word.store_relaxed(slot_word{i, {}, slot_state::empty}.bits());
  }
  for (std::uint32_t i = 0; i < buffer_count; ++i) {
    buffers[i].word.store_relaxed(buffer_word{0, {}, buffer_state::free}.bits());
    free_map[i / 64].fetch_or(std::uint64_t{1} << (i % 64));
  }
}

bool ring::claim_one(owner_id owner, std::uint64_t now_ns, std::uint32_t index, claimed& out) const {
  buffer& entry = buffers[index];
  std::uint64_t seen = entry.word.load();
  const buffer_word word = buffer_word::of(seen);
  if (word.state != buffer_state::free) return false;
  if (!entry.word.exchange_if(seen, buffer_word{word.seq, owner, buffer_state::loaned}.bits())) return false;
  entry.generation.store_relaxed(word.seq);
  entry.deliveries.store_relaxed(0);
  __builtin_prefetch(&at(head->tail.peek()), 1);  // where it will be published, probably
  entry.since_ns.store_relaxed(now_ns);
  out = {index, word.seq};
  return true;
}

step_result ring::claim(owner_id owner, std::uint64_t now_ns, claim_hint& hint, claimed& out) const {
  const auto found = [&hint](std::uint32_t index, std::uint32_t window) {
    hint.next.store(index + 1 < window ? index + 1 : 0, std::memory_order_relaxed);
    return step_result::done;
  };
  const std::uint32_t window = hint.window.load(std::memory_order_relaxed);
  const std::uint32_t next = hint.next.load(std::memory_order_relaxed);
  if (claim_one(owner, now_ns, next, out)) return found(next, window);
  // Then by the map, whose bits stay while buffers come and go, and are cleared here by who finds one that is taken.
  for (std::uint32_t w = 0; w < map_words(); ++w) {
    std::uint64_t bits = free_map[w].load();
    while (bits != 0) {
      const std::uint32_t index = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      const std::uint64_t bit = bits & (~bits + 1);
      bits &= bits - 1;
      if (index >= buffer_count) break;
      if (claim_one(owner, now_ns, index, out)) {
        const std::uint32_t wider = index < window ? window : index + 1;
        hint.window.store(wider, std::memory_order_relaxed);
        return found(index, wider);
      }
      // Whoever frees it looks at the bit after that, as we look at it after the bit was cleared: one of us sets it.
      (void)free_map[w].fetch_and(~bit);
      if (buffer_word::of(buffers[index].word.load()).state == buffer_state::free) (void)free_map[w].fetch_or(bit);
    }
  }
  // The map may have lost a bit with somebody who died.
  for (std::uint32_t index = 0; index < buffer_count; ++index) {
    if (claim_one(owner, now_ns, index, out)) return step_result::done;
  }
  return step_result::none;
}

step_result ring::free_buffer(std::uint32_t index, buffer_word from, std::uint32_t generation,
                              std::uint64_t now_ns) const {
  buffer& entry = buffers[index];
  std::uint64_t seen = from.bits();
  if (!entry.word.exchange_if(seen, buffer_word{generation + 1, {}, buffer_state::free}.bits())) {
    return step_result::evicted;
  }
  entry.since_ns.store_relaxed(now_ns);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if ((free_map[index / 64].load() & bit) == 0) (void)free_map[index / 64].fetch_or(bit);  // pairs with claim()
  return step_result::done;
}

step_result ring::give_back(owner_id owner, const claimed& buffer, std::uint64_t now_ns) const {
  return free_buffer(buffer.buffer, {buffer.generation, owner, buffer_state::loaned}, buffer.generation, now_ns);
}

step_result ring::publish(owner_id owner, std::uint32_t pid, const claimed& buffer, std::uint64_t length,
                          std::uint64_t now_ns) const {
  std::uint32_t position = head->tail.load_relaxed();
  for (std::uint32_t steps = 0;; ++steps) {
    slot& entry = at(position);
    std::uint64_t seen = entry.word.load();
    const slot_word word = slot_word::of(seen);
    const std::int32_t lap = ahead(word.seq, position);
    if (((word.seq ^ position) & (slot_count - 1)) != 0) return found_corrupt(&entry.word);
    if (steps > step_limit()) return step_result::none;
    if (lap < 0) {
      // The ring is full, if what was there a lap before was ever claimed. Else the hint is wrong.
      if (position - word.seq == slot_count && word.state != slot_state::empty) return step_result::none;
      position = first_unclaimed(word);
      head->tail.store_relaxed(position);
      continue;
    }
    if (lap > 0 || word.state != slot_state::empty) {
      position = later(later(head->tail.load_relaxed(), first_unclaimed(word)), position + 1);
      continue;
    }
    const slot_word writing{position, owner, slot_state::writing};
    if (!entry.word.exchange_if(seen, writing.bits())) continue;
    advance(head->tail, position + 1);

    entry.buffer.store_relaxed(buffer.buffer);
    entry.length.store_relaxed(length);
    entry.producer.store_relaxed(pid);
    ipc::detail::buffer& from = buffers[buffer.buffer];
    from.since_ns.store_relaxed(now_ns);
    std::uint64_t loaned = buffer_word{buffer.generation, owner, buffer_state::loaned}.bits();
    if (!from.word.exchange_if(loaned, buffer_word{position, {}, buffer_state::queued}.bits())) {
      // Nobody may wait for a position that nothing will come at.
      std::uint64_t ours = writing.bits();
      (void)entry.word.exchange_if(ours, slot_word{position, {}, slot_state::skip}.bits());
      return step_result::evicted;
    }
    std::uint64_t ours = writing.bits();
    // Failing: we were taken for dead, and another has made it ready. The message is sent.
    (void)entry.word.exchange_if(ours, slot_word{position, {}, slot_state::ready}.bits());
    return step_result::done;
  }
}

std::uint32_t ring::first_ready(std::uint32_t from, std::uint32_t to) const {
  while (from != to && !(slot_word::of(at(from).word.load()) == slot_word{from, {}, slot_state::ready})) ++from;
  return from;
}

step_result ring::take(owner_id owner, std::uint64_t now_ns, taken& out) const {
  std::uint32_t position = head->head.load_relaxed();
  bool all_before_consumed = true;
  std::uint32_t first_passed = position;
  for (std::uint32_t steps = 0;; ++steps) {
    slot& entry = at(position);
    std::uint64_t seen = entry.word.load();
    const slot_word word = slot_word::of(seen);
    const std::int32_t lap = ahead(word.seq, position);
    if (((word.seq ^ position) & (slot_count - 1)) != 0) return found_corrupt(&entry.word);
    if (steps > step_limit()) return step_result::none;
    if (lap < 0) {
      // All the lap is being written or read; or, none of it being so, the hint is wrong.
      if (!all_before_consumed) return step_result::none;
      position = first_unconsumed(word);
      head->head.store_relaxed(position);
      continue;
    }
    if (lap > 0) {
      position = later(later(head->head.load_relaxed(), first_unconsumed(word)), position + 1);
      if (all_before_consumed) advance(head->head, position);
      continue;
    }
    if (word.state == slot_state::empty) return step_result::none;
    if (word.state == slot_state::skip) {
      (void)entry.word.exchange_if(seen, slot_word{position + slot_count, {}, slot_state::empty}.bits());
      continue;
    }
    if (word.state == slot_state::writing || word.state == slot_state::reading) {
      // Another's, who may be slow or dead: later messages need not wait for it.
      if (all_before_consumed) first_passed = position;
      all_before_consumed = false;
      ++position;
      continue;
    }
    if (word.state != slot_state::ready) return found_corrupt(&entry.word);
    // Its producer may have made an earlier one ready, too, since we passed that: what one sends stays in its order.
    if (!all_before_consumed) {
      if (const std::uint32_t earlier = first_ready(first_passed, position); earlier != position) {
        position = earlier;
        continue;
      }
    }
    const slot_word reading{position, owner, slot_state::reading};
    if (!entry.word.exchange_if(seen, reading.bits())) continue;

    const std::uint32_t index = entry.buffer.load_relaxed();
    const std::uint64_t length = entry.length.load_relaxed();
    if (index >= buffer_count) return found_corrupt(&entry.buffer);
    __builtin_prefetch(payload + index * buffer_bytes);  // comes while we go on
    if (length > buffer_bytes) return found_corrupt(&entry.length);
    buffer& from = buffers[index];
    std::uint64_t queued = buffer_word{position, {}, buffer_state::queued}.bits();
    if (!from.word.exchange_if(queued, buffer_word{position, owner, buffer_state::held}.bits())) {
      return slot_word::of(entry.word.load()) == reading ? found_corrupt(&from.word) : step_result::evicted;
    }
    const std::uint32_t deliveries = from.deliveries.load_relaxed() + 1;
    from.deliveries.store_relaxed(deliveries);
    from.since_ns.store_relaxed(now_ns);
    out = {position, index, from.generation.load_relaxed(), entry.producer.load_relaxed(), deliveries, length};
    if (!redelivers) {
      std::uint64_t ours = reading.bits();
      if (!entry.word.exchange_if(ours, slot_word{position + slot_count, {}, slot_state::empty}.bits())) {
        return step_result::evicted;
      }
      if (all_before_consumed) advance(head->head, position + 1);
    }
    return step_result::done;
  }
}

step_result ring::release(owner_id owner, const taken& message, std::uint64_t now_ns) const {
  // The buffer first: a slot that is still being read, with its buffer gone, is one whose message was acknowledged.
  const step_result freed =
      free_buffer(message.buffer, {message.position, owner, buffer_state::held}, message.generation, now_ns);
  if (freed != step_result::done || !redelivers) return freed;
  std::uint64_t ours = slot_word{message.position, owner, slot_state::reading}.bits();
  // Failing: taken for dead in between, and another has done it.
  (void)at(message.position)
      .word.exchange_if(ours, slot_word{message.position + slot_count, {}, slot_state::empty}.bits());
  return step_result::done;
}

bool ring::is_drained(owner_id me) const {
  std::uint32_t position = head->head.load_relaxed();
  for (std::uint32_t steps = 0; steps <= step_limit(); ++steps) {
    const slot_word word = slot_word::of(at(position).word.load());
    const std::int32_t lap = ahead(word.seq, position);
    if (lap < 0 || (lap == 0 && word.state == slot_state::empty)) return true;
    if (lap == 0 && (word.state != slot_state::reading || (word.owner != me && redelivers))) return false;
    position = later(first_unconsumed(word), position + 1);
  }
  return false;
}

}  // namespace forksight::ipc::detail
