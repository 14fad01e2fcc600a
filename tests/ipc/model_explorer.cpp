#include "model_explorer.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace forksight::ipc::test {
namespace {

constexpr std::size_t kMostWords = 40;
constexpr std::uint8_t kKill = kMaxActors;
constexpr std::uint8_t kKillRecoverer = kKill + 1;  // kills the first recovering process; + 1: the second

struct state {
  std::array<value_id, kMostWords> words{};
  std::array<local_id, kMaxActors> actors{};
  bool is_dead = false;
};

struct frame {
  state at;
  std::uint16_t moves = 0;  // the moves that are still to be tried: a bit for each actor, and one for each kill
  std::uint8_t moved = 0;   // the move that led to the next frame
};

class explorer {
 public:
  explorer(const reductions& by, bool progress, const automaton::met_values& met)
      : by_(by), progress_(progress), table_(words_, by.merge_alike, met) {
    const plan_of_run& plan = g_world.plan;
    actors_ = kUsers + plan.recoverers;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      first_.words[i] = table_.intern(read_word(words_[i]));
      table_.meet(i, first_.words[i]);
    }
    for (std::uint32_t i = 0; i < actors_; ++i) first_.actors[i] = table_.start(i);
    can_swap_[0] = plan.producers == 2 && (plan.victim < 0 || plan.victim >= static_cast<int>(kProducers));
    can_swap_[1] = plan.consumers == 2 && plan.acts[0] == plan.acts[1] && plan.victim < static_cast<int>(kProducers);
  }

  exploration run();
  bool was_refuted() const { return table_.was_refuted(); }
  automaton::met_values met() const { return table_.met(); }

 private:
  using local = automaton::local;
  const local& actor(const state& at, std::uint32_t index) const { return table_[at.actors[index]]; }
  bool recovers(std::uint32_t index) const { return index >= kUsers; }
  bool is_victim(std::uint32_t index) const { return static_cast<int>(index) == g_world.plan.victim; }
  bool can_move(const state& at, std::uint32_t index) const;
  std::uint32_t recovering(const state& at) const;
  int owner_of_guard(const state& at, const word_info& fact) const { return table_.owner(at.words[fact.guard]); }

  std::uint16_t moves_from(const state& at);
  bool is_local(const state& at, std::uint32_t index);
  bool is_blind(const state& at, std::uint32_t index);
  bool is_unseen_by_users(const state& at, std::uint32_t recoverer);
  bool leaves_all(const state& at, std::uint32_t index);
  std::string check_access(const state& at, std::uint32_t index, const automaton::transition& by) const;
  state after(const state& at, std::uint8_t move);
  void verify(const state& at, std::uint32_t index, const automaton::transition& by);

  value_id image_of(unsigned swaps, carried what, value_id value);
  void put_images(unsigned swaps, std::array<local_id, kMaxActors>& actors);
  std::uint64_t hash_of(const state& at, unsigned swaps, bool sorts);
  std::uint64_t hash_of(const state& at, const reductions& by);
  std::uint64_t hash_of_end(const state& at, unsigned swaps);
  template <class Hash>
  std::uint64_t least_of_images(Hash hash) const;
  std::string end_of(const state& at);
  void push(const state& at);
  void say(const char* end) const;
  std::string path() const;

  reductions by_;
  bool progress_;
  word_table words_;
  automaton table_;
  std::uint32_t actors_ = 0;
  bool can_swap_[kSwaps] = {};
  state first_;
  state_set seen_, ends_;
  std::vector<frame> stack_;
  exploration all_;
};

bool explorer::can_move(const state& at, std::uint32_t index) const {
  if (actor(at, index).word < 0) return false;
  return recovers(index) ? at.is_dead : !(at.is_dead && is_victim(index));
}

// Returns the number of recovering processes that can make a step. It is 0 while the victim lives.
std::uint32_t explorer::recovering(const state& at) const {
  std::uint32_t count = 0;
  for (std::uint32_t i = kUsers; i < actors_; ++i) count += can_move(at, i) ? 1u : 0u;
  return count;
}

bool explorer::is_local(const state& at, std::uint32_t index) {
  if (is_blind(at, index)) return true;
  const local& one = actor(at, index);
  const word_info& word = words_[static_cast<std::size_t>(one.word)];
  if (!recovers(index)) {
    if (word.kind != word_kind::fact || owner_of_guard(at, word) != static_cast<int>(index)) return false;
    if (!at.is_dead) return true;
    for (std::uint32_t i = kUsers; i < actors_; ++i) {
      if ((actor(at, i).window >> words_[word.guard].bit & 1) != 0) return false;
    }
    return true;
  }
  return recovering(at) == 1 && is_unseen_by_users(at, index);
}

// True if it makes no difference when this step comes: the step leaves its word as it is, and the actor then does the
// same, whatever value the step found in the word.
bool explorer::is_blind(const state& at, std::uint32_t index) {
  if (!by_.merge_alike) return false;
  const local& one = actor(at, index);
  // If the dead process does not own a guard now, it will not own it later either.
  const bool looks_for_dead = recovers(index) && words_[static_cast<std::size_t>(one.word)].kind == word_kind::guard;
  const int victim = looks_for_dead ? g_world.plan.victim : -1;
  const value_id found = at.words[static_cast<std::size_t>(one.word)];
  if (looks_for_dead && table_.owner(found) == victim) return false;
  if (!table_.is_blind(at.actors[index], victim)) return false;
  const local_id next = table_.step(at.actors[index], found).next;
  // While two processes recover, either of them may be killed. When one of them ends, the other cannot be killed any
  // more. So the moment of a recovering process's last step makes a difference.
  return table_.dead(next) == table_.dead(at.actors[index]) && (!recovers(index) || table_[next].word >= 0);
}

// True if no user notices the step of this recovering process, and the step does not depend on what users do.
bool explorer::is_unseen_by_users(const state& at, std::uint32_t recoverer) {
  const local& one = actor(at, recoverer);
  const word_info& word = words_[static_cast<std::size_t>(one.word)];
  const int victim = g_world.plan.victim;
  const value_id found = at.words[static_cast<std::size_t>(one.word)];
  switch (word.kind) {
    case word_kind::recovery: return true;
    case word_kind::fact: return owner_of_guard(at, word) == victim;
    case word_kind::guard:
      return table_.owner(found) == victim && table_.step(at.actors[recoverer], found).left == found;
    case word_kind::common: return false;
  }
  return false;
}

// True if it makes no difference whether this actor is killed before or after its step.
bool explorer::leaves_all(const state& at, std::uint32_t index) {
  const value_id found = at.words[static_cast<std::size_t>(actor(at, index).word)];
  const automaton::transition by = table_.step(at.actors[index], found);
  return by.left == found && table_.dead(by.next) == table_.dead(at.actors[index]);
}

// Returns the moves that must be tried in this state, a bit for each.
std::uint16_t explorer::moves_from(const state& at) {
  unsigned moves = 0;
  const bool can_kill = g_world.plan.victim >= 0 && !at.is_dead;
  const unsigned kill = can_kill ? 1u << kKill : 0u;
  for (std::uint32_t i = 0; i < actors_; ++i) {
    if (!can_move(at, i)) continue;
    const unsigned bit = 1u << i;
    if (by_.merge_local && is_local(at, i)) {
      return static_cast<std::uint16_t>(is_victim(i) && !leaves_all(at, i) ? bit | kill : bit);
    }
    moves |= bit;
  }
  // While two processes recover, either of them may be killed. The other one then completes the recovery.
  if (recovering(at) == 2) {
    constexpr unsigned kBoth = 3u << kUsers | 3u << kKillRecoverer;
    if (by_.merge_local && is_unseen_by_users(at, kUsers) && is_unseen_by_users(at, kUsers + 1)) return kBoth;
    moves |= kBoth;
  }
  return static_cast<std::uint16_t>(moves | kill);
}

std::string explorer::check_access(const state& at, std::uint32_t index, const automaton::transition& by) const {
  const local& one = actor(at, index);
  const word_info& word = words_[static_cast<std::size_t>(one.word)];
  const value_id found = at.words[static_cast<std::size_t>(one.word)];
  const int me = static_cast<int>(index);
  if (word.kind == word_kind::recovery && !recovers(index)) return "a user accesses a word of the recovering processes";
  if (word.kind == word_kind::fact) {
    const bool may = recovers(index) ? (one.window >> words_[word.guard].bit & 1) != 0 : owner_of_guard(at, word) == me;
    if (!may) return "an actor accesses a word whose guard it does not own";
  }
  if (word.kind == word_kind::guard && by.left != found) {
    const int owner = table_.owner(found);
    const bool may = owner < 0 || owner == me || (recovers(index) && at.is_dead && owner == g_world.plan.victim);
    if (!may) return "an actor changes a guard that another living actor owns";
    const int next_owner = table_.owner(by.left);
    if (next_owner >= 0 && next_owner != me) return "an actor makes another actor the owner of a guard";
  }
  return {};
}

void explorer::verify(const state& at, std::uint32_t index, const automaton::transition& by) {
  for (std::size_t i = 0; i < words_.size(); ++i) write_word(words_[i], table_.value(at.words[i]));
  const auto found = at.words[static_cast<std::size_t>(actor(at, index).word)];
  const automaton::transition again = table_.run(at.actors[index], found);
  if (again.next != by.next || again.left != by.left)
    all_.broken = "the code of a step does not do what the table says";
}

state explorer::after(const state& at, std::uint8_t move) {
  state next = at;
  if (move == kKill) {
    next.is_dead = true;
    local_id& victim = next.actors[static_cast<std::size_t>(g_world.plan.victim)];
    if (by_.merge_dead) victim = table_.dead(victim);
    return next;
  }
  if (move >= kKillRecoverer) {
    local_id& dead = next.actors[kUsers + move - kKillRecoverer];
    dead = table_.dead(dead);
    return next;
  }
  const auto word = static_cast<std::size_t>(actor(at, move).word);
  const automaton::transition by = table_.step(at.actors[move], at.words[word]);
  if (by_.merge_local) all_.broken = check_access(at, move, by);
  if (by_.verify) verify(at, move, by);
  next.actors[move] = by.next;
  next.words[word] = by.left;
  table_.meet(word, by.left);
  ++all_.steps;
  return next;
}

value_id explorer::image_of(unsigned swaps, carried what, value_id value) {
  for (std::uint32_t swap = 0; swap < kSwaps; ++swap) {
    if ((swaps >> swap & 1) != 0) value = table_.image(swap, what, value);
  }
  return value;
}

void explorer::put_images(unsigned swaps, std::array<local_id, kMaxActors>& actors) {
  for (std::uint32_t swap = 0; swap < kSwaps; ++swap) {
    if ((swaps >> swap & 1) == 0) continue;
    for (std::uint32_t i = 0; i < actors_; ++i) actors[i] = table_.image(swap, actors[i]);
    std::swap(actors[swap * kProducers], actors[swap * kProducers + 1]);
  }
}

std::uint64_t explorer::hash_of(const state& at, unsigned swaps, bool sorts) {
  std::uint64_t hash = at.is_dead ? 1 : 2, four = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    four = four << 16 | (swaps == 0 ? at.words[i] : image_of(swaps, words_[i].what, at.words[i]));
    if (i % 4 == 3) hash = mixed(hash, four);
  }
  hash = mixed(hash, four);
  std::array<local_id, kMaxActors> actors = at.actors;
  put_images(swaps, actors);
  static_assert(kMaxRecoverers == 2);
  if (sorts && actors[kUsers] > actors[kUsers + 1]) std::swap(actors[kUsers], actors[kUsers + 1]);
  for (std::uint32_t i = 0; i < kMaxActors; i += 2) hash = mixed(hash, std::uint64_t{actors[i]} << 32 | actors[i + 1]);
  return hash;
}

template <class Hash>
std::uint64_t explorer::least_of_images(Hash hash) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (unsigned swaps = 0; swaps < 1u << kSwaps; ++swaps) {
    if ((swaps & 1) != 0 && !can_swap_[0]) continue;
    if ((swaps & 2) != 0 && !can_swap_[1]) continue;
    least = std::min(least, hash(swaps));
  }
  return least;
}

std::uint64_t explorer::hash_of(const state& at, const reductions& by) {
  if (!by.swap_equals) return hash_of(at, 0u, false);
  return least_of_images([&](unsigned swaps) { return hash_of(at, swaps, true); });
}

// Hashes the values, not their numbers, because each exploration numbers the values in its own order. So equal ends of
// two explorations have equal hashes.
std::uint64_t explorer::hash_of_end(const state& at, unsigned swaps) {
  std::uint64_t hash = at.is_dead ? 1 : 2;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    hash = mixed(hash, table_.value(image_of(swaps, words_[i].what, at.words[i])));
  }
  std::array<local_id, kMaxActors> actors = at.actors;
  put_images(swaps, actors);
  for (std::uint32_t i = 0; i < actors_; ++i) {
    const actor_view& one = table_[actors[i]].at.view;
    hash = mixed(hash, one.number * 16u + (one.has_sent ? 1u : 0u) + (one.has_taken ? 2u : 0u) +
                           (one.has_released ? 4u : 0u) + (one.saw_corrupt ? 8u : 0u));
    hash = mixed(hash, one.searched * 4u + (one.has_put_back ? 1u : 0u) + (one.saw_end ? 2u : 0u));
  }
  return hash;
}

// Judges a state in which no actor can make a step.
std::string explorer::end_of(const state& at) {
  state merged = at;
  if (at.is_dead) {
    local_id& victim = merged.actors[static_cast<std::size_t>(g_world.plan.victim)];
    victim = table_.dead(victim);
  }
  if (!ends_.insert(least_of_images([&](unsigned swaps) { return hash_of_end(merged, swaps); }))) return {};
  for (std::size_t i = 0; i < words_.size(); ++i) write_word(words_[i], table_.value(at.words[i]));
  ending what;
  for (std::uint32_t i = 0; i < kUsers; ++i) what.views[i] = actor(merged, i).at.view;
  for (std::uint32_t i = kUsers; i < actors_; ++i) {
    if (actor(at, i).at.view.saw_corrupt) return "a recovering process lost a message in spite of redeliver";
  }
  what.is_dead = at.is_dead;
  return check_end(what);
}

void explorer::push(const state& at) {
  if (!seen_.insert(hash_of(at, by_))) return;
  const std::uint16_t moves = moves_from(at);
  if (moves == 0) {
    all_.broken = end_of(at);
    return;
  }
  if (progress_ && seen_.size() % (1u << 20) == 0) say("\r");
  stack_.push_back({at, moves, 0});
}

void explorer::say(const char* end) const {
  std::fprintf(stderr, "%zu million states, %zu ends, %zu MiB, depth %zu%s", seen_.size() >> 20, ends_.size(),
               seen_.bytes() >> 20, stack_.size(), end);
}

std::string explorer::path() const {
  std::string text;
  for (const frame& one : stack_) {
    if (one.moved < kKill) {
      text += " " + std::to_string(one.moved);
    } else if (one.moved == kKill) {
      text += " KILL";
    } else {
      text += " KILL " + std::to_string(kUsers + one.moved - kKillRecoverer);
    }
  }
  return text;
}

exploration explorer::run() {
  push(first_);
  while (!stack_.empty() && all_.broken.empty() && !was_refuted()) {
    frame& top = stack_.back();
    if (top.moves == 0) {
      stack_.pop_back();
      continue;
    }
    std::uint8_t move = 0;
    while ((top.moves >> move & 1) == 0) ++move;
    top.moves = static_cast<std::uint16_t>(top.moves & ~(1u << move));
    top.moved = move;
    const state next = after(top.at, move);
    if (all_.broken.empty()) push(next);
    if (all_.broken.empty() && !table_.broken().empty()) all_.broken = table_.broken();
  }
  if (progress_) say("\n");
  all_.states = seen_.size();
  all_.ends = ends_.size();
  all_.bytes = seen_.bytes();
  all_.end_states = ends_.all();
  if (all_.broken.empty() && all_.ends == 0) all_.broken = "no end was reached";
  if (!all_.broken.empty()) all_.broken += ", after steps of the actors" + path();
  return all_;
}

}  // namespace

exploration explore(const reductions& by, bool progress) {
  std::array<char, sizeof g_world.memory> first;
  std::memcpy(first.data(), &g_world.memory, sizeof first);
  automaton::met_values met;
  for (;;) {
    explorer one(by, progress, met);
    exploration found = one.run();
    if (!one.was_refuted()) return found;
    met = one.met();
    std::memcpy(static_cast<void*>(&g_world.memory), first.data(), sizeof first);
  }
}

}  // namespace forksight::ipc::test
