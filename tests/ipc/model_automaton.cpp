#include "model_automaton.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace forksight::ipc::test {
namespace {

using namespace detail;

constexpr local_id kNoLocal = ~local_id{0};

// Returns what two local states must have in common to be alike, as a string.
std::string common_key_of(const suspended& what, std::uint8_t window) {
  const actor_view& view = what.view;
  std::string key{static_cast<char>(window)};
  for (const bool one : {view.is_over, view.has_sent, view.has_taken, view.has_released, view.has_put_back,
                         view.saw_end, view.saw_corrupt}) {
    key += one ? '1' : '0';
  }
  key += std::to_string(view.number) + ',' + std::to_string(view.searched) + (what.next == nullptr ? '.' : '>');
  key.append(reinterpret_cast<const char*>(&what.next), sizeof what.next);
  return key;
}

std::string key_of(const suspended& what, std::uint8_t window) { return common_key_of(what, window) + what.bytes; }

// Returns the number of the first of the two users that `swap` exchanges.
std::uint32_t first_of(std::uint32_t swap) { return swap == 0 ? 0 : kProducers; }

std::uint64_t swapped(std::uint64_t value, std::uint64_t one) {
  return value == one ? one + 1 : value == one + 1 ? one : value;
}

}  // namespace

automaton::automaton(const word_table& words, bool merges, const met_values& met)
    : words_(words), merges_(merges), met_(words.size()), is_met_(words.size()) {
  for (std::size_t i = 0; i < met.size(); ++i) {
    for (const std::uint64_t value : met[i]) meet(i, intern(value));
  }
  for (std::uint32_t i = 0; i < kMaxActors; ++i) {
    const std::uint32_t actor = i < kUsers ? i : kUsers;
    local made;
    made.at = start_actor(actor);
    made.recovers = actor == kUsers;
    starts_[i] = intern(std::move(made));
  }
  for (const local_id one : starts_) locals_[one].before = one;
  for (std::uint32_t swap = 0; swap < kSwaps; ++swap) {
    for (std::uint32_t i = 0; i < kMaxActors; ++i) {
      const std::uint32_t other = i < kUsers ? static_cast<std::uint32_t>(swapped(i, first_of(swap))) : i;
      locals_[starts_[i]].image[swap] = starts_[other] + 1;
    }
  }
}

local_id automaton::intern(local what) {
  const auto [at, is_new] = ids_.try_emplace(key_of(what.at, what.window), static_cast<local_id>(locals_.size()));
  if (!is_new) return at->second;
  what.word = what.at.next == nullptr ? -1 : words_.find(what.at.next);
  what.like = at->second;
  locals_.push_back(std::move(what));
  return at->second;
}

value_id automaton::intern(std::uint64_t value) {
  const auto [at, is_new] = value_ids_.try_emplace(value, static_cast<value_id>(values_.size()));
  if (!is_new) return at->second;
  if (values_.size() > 0xffff) std::abort();
  known_value made;
  made.bits = value;
  // The words of slots and the words of buffers have the owner in the same bits.
  const auto word = slot_word::of(value);
  if (!word.owner.is_nobody()) made.owner = static_cast<int>(word.owner.index());
  values_.push_back(made);
  return at->second;
}

// A recovering process accesses a guarded word only after it found the dead process in the guard. It accesses
// all slots first, and then all buffers. An access to a slot's guard clears the window, and so does an access to a
// common word. An access to a buffer's guard clears the bits of the other buffers.
std::uint8_t automaton::window_after(local_id from, value_id found) const {
  const local& one = locals_[from];
  const word_info& word = words_[static_cast<std::size_t>(one.word)];
  if (!one.recovers) return one.window;
  if (word.kind == word_kind::common) return 0;
  if (word.kind != word_kind::guard) return one.window;
  constexpr unsigned kSlotBits = (1u << kSlots) - 1;
  const unsigned kept = word.bit < kSlots ? 0 : one.window & kSlotBits;
  const bool names_dead = owner(found) == g_world.plan.victim && owner(found) >= 0;
  return static_cast<std::uint8_t>(kept | (names_dead ? 1u << word.bit : 0));
}

automaton::transition automaton::run(local_id from, value_id found) {
  const word_info& word = words_[static_cast<std::size_t>(locals_[from].word)];
  const suspended at = locals_[from].at;
  write_word(word, values_[found].bits);
  memory_of_ring before;
  std::memcpy(static_cast<void*>(&before), &g_world.memory, sizeof before);
  suspended then = resume_actor(at);
  const std::uint64_t left = read_word(word);
  // If the step changed another word, the table would be wrong.
  const std::size_t offset = static_cast<std::size_t>(word.at - reinterpret_cast<char*>(&g_world.memory));
  std::memcpy(reinterpret_cast<char*>(&before) + offset, word.at, word.size);
  for (std::uint32_t i = 0; i < kBuffers; ++i) {
    // These words may change: word_table::is_ignored() is true for them.
    detail::buffer& to = before.buffers[i];
    const detail::buffer& now = g_world.memory.buffers[i];
    to.since_ns.store_relaxed(now.since_ns.peek());
    to.parked_by.store_relaxed(now.parked_by.peek());
    for (std::uint32_t k = 0; k < kRememberedConsumers; ++k) to.consumers[k].store_relaxed(now.consumers[k].peek());
  }
  if (std::memcmp(&before, &g_world.memory, sizeof before) != 0) broken_ = "one step changed more than one word";
  local made;
  made.recovers = locals_[from].recovers;
  made.window = then.view.is_over ? 0 : window_after(from, found);
  made.at = std::move(then);
  made.before = from;
  made.by = found;
  return {intern(std::move(made)), intern(left)};
}

automaton::transition automaton::step(local_id from, value_id found) {
  transition by = raw_step(from, found);
  by.next = merged(by.next);
  return by;
}

automaton::transition automaton::raw_step(local_id from, value_id found) {
  if (from >= table_.size()) table_.resize(locals_.size());
  if (found < table_[from].size() && table_[from][found].next != kNoLocal) return table_[from][found];
  const transition made = run(from, found);
  std::vector<transition>& steps = table_[from];
  if (found >= steps.size()) steps.resize(found + std::size_t{1}, {kNoLocal, 0});
  return steps[found] = made;
}

local_id automaton::first_like(local_id of) {
  while (locals_[of].like != of) of = locals_[of].like = locals_[locals_[of].like].like;
  return of;
}

local_id automaton::merged(local_id of) {
  if (!merges_ || locals_[of].word < 0) return of;
  if (!locals_[of].was_compared) {
    locals_[of].was_compared = true;
    std::vector<local_id>& others = standing_[common_key_of(locals_[of].at, locals_[of].window)];
    for (const local_id other : others) {
      if (first_like(other) == first_like(of) || merge_if_alike(other, of)) return first_like(of);
    }
    others.push_back(of);
  }
  return first_like(of);
}

// Assumes that the two local states are alike, and tries their next step with each value. If a step leads to two
// different local states, these must be alike, too, and are tried in the same way. If no step contradicts the
// assumption, the two local states of each pair are alike. Gives up if there are too many pairs.
bool automaton::merge_if_alike(local_id one, local_id other) {
  constexpr std::size_t kMostPairs = 200;
  std::vector<std::pair<local_id, local_id>> pairs;
  std::unordered_map<local_id, local_id> assumed;  // a forest, as local::like
  const auto top = [&](local_id of) {
    of = first_like(of);
    for (auto at = assumed.find(of); at != assumed.end(); at = assumed.find(of)) of = at->second;
    return of;
  };
  const auto assume = [&](local_id a, local_id b) {
    a = top(a);
    b = top(b);
    if (a == b) return true;
    const local &left = locals_[a], &right = locals_[b];
    if (left.recovers != right.recovers ||
        common_key_of(left.at, left.window) != common_key_of(right.at, right.window)) {
      return false;
    }
    assumed[std::max(a, b)] = std::min(a, b);
    pairs.emplace_back(a, b);
    return pairs.size() < kMostPairs;
  };
  if (!assume(one, other)) return false;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [a, b] = pairs[i];
    if (locals_[a].word < 0) return false;  // they have ended, and differ
    for (const value_id value : met_[static_cast<std::size_t>(locals_[a].word)]) {
      const transition left = raw_step(a, value), right = raw_step(b, value);
      if (left.left != right.left || !assume(left.next, right.next)) return false;
    }
  }
  for (const auto& [later, earlier] : assumed) locals_[later].like = earlier;
  ++merges_done_;
  return true;
}

void automaton::meet_new(std::size_t word, value_id value) {
  if (is_met_[word].size() <= value) is_met_[word].resize(value + std::size_t{1});
  is_met_[word][value] = true;
  met_[word].push_back(value);
  for (local_id i = 0; i < locals_.size(); ++i) {
    const local_id first = first_like(i);
    if (first == i || locals_[i].word != static_cast<int>(word)) continue;
    const transition here = raw_step(first, value), there = raw_step(i, value);
    const bool are_alike = here.left == there.left &&
                           (first_like(here.next) == first_like(there.next) || merge_if_alike(here.next, there.next));
    if (!are_alike) was_refuted_ = true;
  }
  for (local_id i = 0; i < locals_.size(); ++i) {
    if (!locals_[i].was_blind || locals_[i].word != static_cast<int>(word)) continue;
    local_id next = kNoLocal;
    for (const value_id one : met_[word]) was_refuted_ = was_refuted_ || !is_blind_with(i, one, next);
  }
}

bool automaton::is_blind_with(local_id from, value_id value, local_id& next) {
  const int ignored = locals_[from].ignored;
  if (ignored >= 0 && owner(value) == ignored) return true;
  const transition by = raw_step(from, value);
  const local_id then = merged(by.next);
  if (next == kNoLocal) next = then;
  return by.left == value && then == next;
}

bool automaton::is_blind(local_id from, int ignored) {
  if (!merges_) return false;
  if (locals_[from].was_blind) return locals_[from].ignored == ignored;
  // If this step once depended on the value, it still does, unless local states were merged since.
  if (locals_[from].sees_since == merges_done_) return false;
  locals_[from].ignored = ignored;
  local_id next = kNoLocal;
  for (const value_id value : met_[static_cast<std::size_t>(locals_[from].word)]) {
    if (is_blind_with(from, value, next)) continue;
    locals_[from].sees_since = merges_done_;
    return false;
  }
  return locals_[from].was_blind = next != kNoLocal;
}

automaton::met_values automaton::met() const {
  met_values all(met_.size());
  for (std::size_t i = 0; i < met_.size(); ++i) {
    for (const value_id value : met_[i]) all[i].push_back(values_[value].bits);
  }
  return all;
}

local_id automaton::over(actor_view view) {
  local made;
  made.at.view = view;
  made.at.view.is_over = true;
  return intern(std::move(made));
}

local_id automaton::dead(local_id from) { return over(locals_[from].at.view); }

value_id automaton::image(std::uint32_t swap, carried what, value_id of) {
  std::int32_t known = values_[of].images[swap][static_cast<std::size_t>(what)];
  if (known >= 0) return static_cast<value_id>(known);
  std::uint64_t bits = values_[of].bits;
  const std::uint64_t first = first_of(swap);
  if (what == carried::owner) {
    slot_word word = slot_word::of(bits);
    if (!word.owner.is_nobody()) {
      const auto index = static_cast<std::uint32_t>(swapped(word.owner.index(), first));
      word.owner = owner_id(index, word.owner.incarnation());
    }
    bits = word.bits();
  } else if (swap == 0 && what != carried::nothing) {
    bits = swapped(bits, what == carried::number ? first + 1 : first);
  }
  known = intern(bits);
  values_[of].images[swap][static_cast<std::size_t>(what)] = known;
  return static_cast<value_id>(known);
}

local_id automaton::image(std::uint32_t swap, local_id of) {
  if (locals_[of].image[swap] != 0) return locals_[of].image[swap] - 1;
  local_id made = 0;
  if (locals_[of].word < 0) {
    actor_view view = locals_[of].at.view;
    if (swap == 0) view.number = static_cast<std::uint32_t>(swapped(view.number, 1));
    made = over(view);
  } else {
    // The image of a local state is computed from the local state before it: the image of the earlier state makes the
    // same step, and the result of this step is the image of the later state.
    const local_id before = locals_[of].before;
    const value_id by = locals_[of].by;
    const local_id mirrored = image(swap, before);
    if (locals_[mirrored].word != locals_[before].word) {
      broken_ = "the users are not alike: one accesses another word";
      return of;
    }
    const carried what = words_[static_cast<std::size_t>(locals_[before].word)].what;
    const transition here = raw_step(before, by);
    const transition there = raw_step(mirrored, image(swap, what, by));
    if (there.left != image(swap, what, here.left)) broken_ = "the users are not alike: one leaves another value";
    made = there.next;
  }
  locals_[of].image[swap] = made + 1;
  return made;
}

}  // namespace forksight::ipc::test
