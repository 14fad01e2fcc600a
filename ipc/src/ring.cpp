#include "ring.hpp"

#include <algorithm>
#include <bit>

namespace forksight::ipc::detail {

thread_local const void* ring::corrupt_at = nullptr;

namespace {

// Returns by how many positions the first argument is ahead of the second. The result is negative if the first is
// behind. Positions wrap around.
std::int32_t ahead(std::uint32_t of, std::uint32_t than) { return static_cast<std::int32_t>(of - than); }

std::uint32_t later(std::uint32_t one, std::uint32_t other) { return ahead(one, other) > 0 ? one : other; }

}  // namespace

step_result ring::found_corrupt(const void* where) const {
  corrupt_at = where;
  return step_result::corrupt;
}

void ring::advance(shared_word<std::uint32_t>& hint, std::uint32_t to) const {
  // If two members store at once, the lower value may stay. The lower value is also valid, and the next store raises
  // it.
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
  entry.parked_by.store_relaxed(0);
  __builtin_prefetch(&at(head->tail.peek()), 1);  // probably the slot in which the buffer will be published
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
  // The buffer `next` was not free, so the map is searched. A member that takes a buffer does not clear the buffer's
  // bit. The next search that finds the buffer taken clears the bit, below.
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
      // Another member may free the buffer now. That member checks the bit after it has freed the buffer. This member
      // checks the buffer after it has cleared the bit. So at least one of the two notices the other's change, and sets
      // the bit.
      (void)free_map[w].fetch_and(~bit);
      if (buffer_word::of(buffers[index].word.load()).state == buffer_state::free) (void)free_map[w].fetch_or(bit);
    }
  }
  // The map may lack a bit, because a member died before it set the bit.
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
      // If the position one lap earlier is claimed and not yet consumed, the ring is full. Otherwise the hint is wrong.
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
    ipc::detail::buffer& from = buffers[buffer.buffer];
    from.length.store_relaxed(length);
    from.producer.store_relaxed(pid);
    from.since_ns.store_relaxed(now_ns);
    std::uint64_t loaned = buffer_word{buffer.generation, owner, buffer_state::loaned}.bits();
    if (!from.word.exchange_if(loaned, buffer_word{position, {}, buffer_state::queued}.bits())) {
      // The position is skipped, so that nobody waits for it.
      std::uint64_t ours = writing.bits();
      (void)entry.word.exchange_if(ours, slot_word{position, {}, slot_state::skip}.bits());
      return step_result::evicted;
    }
    std::uint64_t ours = writing.bits();
    // If other members took this one for dead, this exchange fails. But the others have then made the slot ready, so
    // the message is sent.
    (void)entry.word.exchange_if(ours, slot_word{position, {}, slot_state::ready}.bits());
    return step_result::done;
  }
}

std::uint32_t ring::first_ready(std::uint32_t from, std::uint32_t to) const {
  while (from != to && !(slot_word::of(at(from).word.load()) == slot_word{from, {}, slot_state::ready})) ++from;
  return from;
}

// Called when the caller owns the message. Copies the fields of the buffer's entry into `message`, and records the
// delivery in the entry.
step_result ring::deliver(std::uint32_t pid, std::uint64_t now_ns, taken& message) const {
  buffer& from = buffers[message.buffer];
  message.generation = from.generation.load_relaxed();
  message.producer = from.producer.load_relaxed();
  message.length = from.length.load_relaxed();
  if (message.length > buffer_bytes) return found_corrupt(&from.length);
  message.deliveries = from.deliveries.load_relaxed();
  from.since_ns.store_relaxed(now_ns);
  if (message.is_withdrawn) return step_result::done;
  from.consumers[message.deliveries % kRememberedConsumers].store_relaxed(pid);
  from.deliveries.store_relaxed(++message.deliveries);
  return step_result::done;
}

// Takes the oldest buffer in state `from`, and puts it into state `to`. If another member takes that buffer first, this
// function searches again, up to eight times. Then one last pass takes any buffer in state `from`. So the function
// ends, however many buffers other members take. If the last pass takes nothing, each buffer was in another state when
// the pass reached it, or another member took that buffer at that moment. So the result `none` is correct.
step_result ring::take_from(buffer_state from, buffer_state to, owner_id owner, taken& out) const {
  constexpr int kRounds = 8;
  for (int round = 0; round <= kRounds; ++round) {
    const bool takes_any = round == kRounds;
    std::uint32_t found = kNoBuffer;
    std::uint64_t seen = 0;
    for (std::uint32_t i = 0; i < buffer_count; ++i) {
      std::uint64_t bits = buffers[i].word.load();
      const buffer_word word = buffer_word::of(bits);
      if (word.state != from) continue;
      if (takes_any) {
        if (!buffers[i].word.exchange_if(bits, buffer_word{word.seq, owner, to}.bits())) continue;
        out.position = word.seq;
        out.buffer = i;
        return step_result::done;
      }
      if (found != kNoBuffer && ahead(word.seq, buffer_word::of(seen).seq) >= 0) continue;
      found = i;
      seen = bits;
    }
    if (found == kNoBuffer) return step_result::none;
    const std::uint32_t position = buffer_word::of(seen).seq;
    if (!buffers[found].word.exchange_if(seen, buffer_word{position, owner, to}.bits())) continue;
    out.position = position;
    out.buffer = found;
    return step_result::done;
  }
  return step_result::none;
}

step_result ring::take(owner_id owner, std::uint32_t pid, std::uint64_t now_ns, take_hint& hint, taken& out) const {
  // A further round follows only if another member has recovered a dead process or requeued a message during this
  // round.
  constexpr int kMostRounds = 64;
  for (int round = 0; round < kMostRounds; ++round) {
    // A member that returns a message first returns it, and then increases `returns`. This function reads `returns`
    // before it searches. So if the search misses a message that is returned meanwhile, `returns` changes after it was
    // read here. Then a later call searches again.
    const std::uint64_t returns = head->returns.load();
    if (returns != hint.searched.load(std::memory_order_relaxed)) {
      taken message;
      if (take_from(buffer_state::returned, buffer_state::held, owner, message) == step_result::done) {
        const step_result delivered = deliver(pid, now_ns, message);
        out = message;
        return delivered;
      }
      hint.searched.store(returns, std::memory_order_relaxed);
    }
    const step_result queued = take_queued(owner, pid, now_ns, out);
    if (queued != step_result::none || head->returns.load() == returns) return queued;
  }
  return step_result::none;
}

step_result ring::take_queued(owner_id owner, std::uint32_t pid, std::uint64_t now_ns, taken& out) const {
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
      // The slot is still at an earlier lap. If the search has passed slots that other members own, it has gone around
      // the ring and come back to such a slot. Then no slot is ready. If the search has not passed such a slot, the
      // hint is wrong.
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
      // Another member owns this slot, and may be slow or dead. Later messages need not wait for that member.
      if (all_before_consumed) first_passed = position;
      all_before_consumed = false;
      ++position;
      continue;
    }
    if (word.state != slot_state::ready) return found_corrupt(&entry.word);
    // The search may have passed earlier slots that were not ready. The producer of this message may have made one of
    // them ready since then. The message in that earlier slot is taken first, because the messages of one producer must
    // stay in order.
    if (!all_before_consumed) {
      if (const std::uint32_t earlier = first_ready(first_passed, position); earlier != position) {
        position = earlier;
        continue;
      }
    }
    const slot_word reading{position, owner, slot_state::reading};
    if (!entry.word.exchange_if(seen, reading.bits())) continue;

    const std::uint32_t index = entry.buffer.load_relaxed();
    if (index >= buffer_count) return found_corrupt(&entry.buffer);
    __builtin_prefetch(payload + index * buffer_bytes);  // starts to load the message into the cache
    buffer& from = buffers[index];
    std::uint64_t queued = buffer_word{position, {}, buffer_state::queued}.bits();
    if (!from.word.exchange_if(queued, buffer_word{position, owner, buffer_state::held}.bits())) {
      return slot_word::of(entry.word.load()) == reading ? found_corrupt(&from.word) : step_result::evicted;
    }
    taken message;
    message.position = position;
    message.buffer = index;
    if (const step_result delivered = deliver(pid, now_ns, message); delivered != step_result::done) return delivered;
    // Until the buffer is held, only the slot refers to the message. So the buffer was changed first, and the slot is
    // changed now.
    std::uint64_t ours = reading.bits();
    if (!entry.word.exchange_if(ours, slot_word{position + slot_count, {}, slot_state::empty}.bits())) {
      return step_result::evicted;
    }
    if (all_before_consumed) advance(head->head, position + 1);
    out = message;
    return step_result::done;
  }
}

namespace {

buffer_word word_of(owner_id owner, const taken& message) {
  return {message.position, owner, message.is_withdrawn ? buffer_state::withdrawn : buffer_state::held};
}

}  // namespace

step_result ring::release(owner_id owner, const taken& message, std::uint64_t now_ns) const {
  return free_buffer(message.buffer, word_of(owner, message), message.generation, now_ns);
}

step_result ring::park(owner_id owner, std::uint32_t pid, const taken& message, std::uint64_t now_ns) const {
  buffer& entry = buffers[message.buffer];
  const buffer_word ours = word_of(owner, message);
  std::uint64_t seen = entry.word.load();
  if (seen != ours.bits()) return step_result::evicted;
  if (!message.is_withdrawn) entry.parked_by.store_relaxed(pid);
  entry.since_ns.store_relaxed(now_ns);
  const buffer_word parked{message.position, {}, buffer_state::parked};
  return entry.word.exchange_if(seen, parked.bits()) ? step_result::done : step_result::evicted;
}

step_result ring::withdraw(owner_id owner, std::uint64_t now_ns, taken& out) const {
  taken message;
  message.is_withdrawn = true;
  const step_result got = take_from(buffer_state::parked, buffer_state::withdrawn, owner, message);
  if (got != step_result::done) return got;
  const step_result delivered = deliver(0, now_ns, message);
  out = message;
  return delivered;
}

step_result ring::withdraw_from(std::uint32_t buffer, owner_id owner, std::uint64_t now_ns, taken& out) const {
  std::uint64_t seen = buffers[buffer].word.load();
  const buffer_word word = buffer_word::of(seen);
  if (word.state != buffer_state::parked) return step_result::none;
  const buffer_word ours{word.seq, owner, buffer_state::withdrawn};
  if (!buffers[buffer].word.exchange_if(seen, ours.bits())) return step_result::none;
  taken message;
  message.is_withdrawn = true;
  message.position = word.seq;
  message.buffer = buffer;
  const step_result delivered = deliver(0, now_ns, message);
  out = message;
  return delivered;
}

step_result ring::requeue(owner_id owner, const taken& message, std::uint64_t now_ns) const {
  buffer& entry = buffers[message.buffer];
  std::uint64_t seen = entry.word.load();
  if (seen != word_of(owner, message).bits()) return step_result::evicted;
  entry.deliveries.store_relaxed(0);
  entry.parked_by.store_relaxed(0);
  entry.since_ns.store_relaxed(now_ns);
  const buffer_word returned{message.position, {}, buffer_state::returned};
  if (!entry.word.exchange_if(seen, returned.bits())) return step_result::evicted;
  // `returns` must be increased after the message is returned: see take(). If this member dies before this line, its
  // recovery increases `returns`.
  (void)head->returns.fetch_add(1);
  return step_result::done;
}

bool ring::is_drained(owner_id me) const {
  std::uint32_t position = head->head.load_relaxed();
  for (std::uint32_t steps = 0; steps <= step_limit(); ++steps) {
    const slot_word word = slot_word::of(at(position).word.load());
    const std::int32_t lap = ahead(word.seq, position);
    if (lap < 0 || (lap == 0 && word.state == slot_state::empty)) return can_get_no_more(me);
    if (lap == 0 && (word.state != slot_state::reading || word.owner != me)) return false;
    position = later(first_unconsumed(word), position + 1);
  }
  return false;
}

// Called after the slots were checked. A returned or held message never goes back into a slot, so the check of the
// slots stays valid.
bool ring::can_get_no_more(owner_id me) const {
  if (!redelivers && head->returns.load() == 0) return true;
  for (std::uint32_t i = 0; i < buffer_count; ++i) {
    const buffer_word word = buffer_word::of(buffers[i].word.load());
    if (word.state == buffer_state::returned) return false;
    if (redelivers && word.state == buffer_state::held && word.owner != me) return false;
  }
  return true;
}

bool ring::has_message(take_hint& hint) const {
  std::uint32_t position = head->head.load_relaxed();
  for (std::uint32_t steps = 0; steps <= step_limit(); ++steps) {
    const slot_word word = slot_word::of(at(position).word.load());
    const std::int32_t lap = ahead(word.seq, position);
    if (lap < 0 || (lap == 0 && word.state == slot_state::empty)) break;
    if (lap == 0 && word.state == slot_state::ready) return true;
    position = lap == 0 ? position + 1 : later(first_unconsumed(word), position + 1);
  }
  // `hint.searched` is the value that `returns` had before the last search that found no returned message. If `returns`
  // still has this value, no message was returned since then. So no search is needed, as in take().
  const std::uint64_t returns = head->returns.load();
  if (returns == hint.searched.load(std::memory_order_relaxed)) return false;
  for (std::uint32_t i = 0; i < buffer_count; ++i) {
    if (buffer_word::of(buffers[i].word.load()).state == buffer_state::returned) return true;
  }
  hint.searched.store(returns, std::memory_order_relaxed);
  return false;
}

bool ring::has_free_buffer() const {
  if (count_available(wait_kind::buffer, 1) != 0) return true;
  // The map may lack a bit, because a member died before it set the bit.
  for (std::uint32_t i = 0; i < buffer_count; ++i) {
    if (buffer_word::of(buffers[i].word.load()).state == buffer_state::free) return true;
  }
  return false;
}

std::uint32_t ring::count_available(wait_kind kind, std::uint32_t most) const {
  std::uint32_t found = 0;
  if (kind == wait_kind::buffer) {
    for (std::uint32_t w = 0; w < map_words() && found < most; ++w) {
      for (std::uint64_t bits = free_map[w].load(); bits != 0 && found < most; bits &= bits - 1) {
        const std::uint32_t index = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
        if (index >= buffer_count) break;
        if (buffer_word::of(buffers[index].word.load()).state == buffer_state::free) ++found;
      }
    }
    return found;
  }
  const std::int32_t used = std::max(ahead(head->tail.load(), head->head.load()), 0);
  if (kind == wait_kind::slot)
    return std::min(most, slot_count - std::min(static_cast<std::uint32_t>(used), slot_count));
  found = std::min(most, static_cast<std::uint32_t>(used));
  if (head->returns.load() == 0) return found;
  for (std::uint32_t i = 0; i < buffer_count && found < most; ++i) {
    if (buffer_word::of(buffers[i].word.load()).state == buffer_state::returned) ++found;
  }
  return found;
}

}  // namespace forksight::ipc::detail
