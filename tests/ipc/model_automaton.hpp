// A table of the steps of all actors. A step accesses one word of the shared memory. The key of an entry is the actor's
// local state, and the value that it finds in that word. The entry contains the next local state, and the value that
// the step leaves in the word. To make an entry, the actor's code runs once. With the table, the state of all actors
// consists of a few small numbers, and a step is a look-up.
//
// A local state contains bytes of the stack. The code does not read some of these bytes again. For this reason, there
// are many local states that differ only in such bytes, and the actor does the same in all of them. With `merges`, such
// local states become one. Two local states are alike under three conditions. The actor has done the same in both. It
// accesses the same word next in both. Whatever value the word has, the two steps leave the same value in the word, and
// lead to local states that are alike. The third condition is tried with each value that was met in the word so far.
// When a word takes a new value, all local states that were merged are tried with that value, too. If two of them then
// differ, was_refuted() returns true, and the exploration must begin anew. The new exploration knows more values from
// the beginning. If an exploration was not refuted, the local states that it merged do the same with every value that
// it met.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model_fiber.hpp"
#include "model_world.hpp"

namespace forksight::ipc::test {

using local_id = std::uint32_t;
using value_id = std::uint16_t;
// The number of symmetries. In the first, each of the two producers takes the name of the other one. In the second, the
// two consumers do so.
constexpr std::uint32_t kSwaps = 2;

class automaton {
 public:
  struct local {
    suspended at;
    int word = -1;  // the index of the word that the next step accesses; -1: the actor has ended
    // Only for a process that recovers what a dead process held. The dead process owned some guards (words of the ring
    // that name an owner). Each of these guards has a bit. The bit is set while the recovering process may still access
    // the words that the guard protects (window_after).
    std::uint8_t window = 0;
    bool recovers = false;
    local_id before = 0;          // the local state whose step first led to this one
    value_id by = 0;              // the value that this step found
    local_id image[kSwaps] = {};  // by symmetry: one more than the id of the mirrored local state; 0: not computed yet
    // Only with merges: an earlier local state that is like this one, or this local state itself if there is no earlier
    // one. Local states that are alike form a tree. The root of the tree stands for all of them (first_like).
    local_id like = 0;
    bool was_compared = false;  // merged() has compared this local state with the others
    bool was_blind = false;     // is_blind() has returned true
    int ignored = -1;           // the argument `ignored` of the latest call of is_blind()
    // Set when is_blind() finds that the step of this local state depends on the value of its word. Then this is
    // merges_done_ at that moment. -1: is_blind() has not found this.
    int sees_since = -1;
  };
  // The values that were met in each word.
  using met_values = std::vector<std::vector<std::uint64_t>>;
  struct transition {
    local_id next = 0;
    value_id left = 0;
  };

  // `met`: the values that an earlier exploration of the same plan has met.
  automaton(const word_table& words, bool merges, const met_values& met);

  local_id start(std::uint32_t actor) { return merged(starts_[actor]); }
  const local& operator[](local_id id) const { return locals_[id]; }
  transition step(local_id from, value_id found);
  // Runs the code of one step without the table, to make an entry or to check one. Writes `found` into the word that
  // the step accesses, and leaves the other words as they are.
  transition run(local_id from, value_id found);
  // Returns the local state of an actor that was killed in `from`. It contains what the actor had done, but not what it
  // would have done next.
  local_id dead(local_id from);

  value_id intern(std::uint64_t value);
  std::uint64_t value(value_id id) const { return values_[id].bits; }
  // Returns the participant that owns a guard with this value; -1: nobody does.
  int owner(value_id id) const { return values_[id].owner; }

  // `swap` chooses two actors: the two producers, or the two consumers. Returns what this local state or this value of
  // a word would be if these two actors had changed places.
  local_id image(std::uint32_t swap, local_id of);
  value_id image(std::uint32_t swap, carried what, value_id of);

  std::size_t locals() const { return locals_.size(); }
  const std::string& broken() const { return broken_; }

  // Call this when a word takes a value.
  void meet(std::size_t word, value_id value) {
    if (merges_ && !(value < is_met_[word].size() && is_met_[word][value])) meet_new(word, value);
  }
  // True if the step of this local state leaves its word as it is, and leads to the same local state whatever the value
  // of the word is. Values that name `ignored` as the owner do not count.
  bool is_blind(local_id from, int ignored);
  bool was_refuted() const { return was_refuted_; }
  met_values met() const;

 private:
  struct known_value {
    std::uint64_t bits = 0;
    int owner = -1;
    std::int32_t images[kSwaps][4] = {{-1, -1, -1, -1}, {-1, -1, -1, -1}};
  };
  local_id intern(local what);
  transition raw_step(local_id from, value_id found);
  local_id over(actor_view view);
  // Returns the local state that stands for this one and for all local states that are like it.
  local_id merged(local_id of);
  local_id first_like(local_id of);
  bool merge_if_alike(local_id one, local_id other);
  bool is_blind_with(local_id from, value_id value, local_id& next);
  void meet_new(std::size_t word, value_id value);
  std::uint8_t window_after(local_id from, value_id found) const;

  const word_table& words_;
  bool merges_;
  bool was_refuted_ = false;
  std::vector<std::vector<value_id>> met_;  // by word
  std::vector<std::vector<bool>> is_met_;   // by word and value
  // The local states, indexed by the key that common_key_of() returns for them. A new local state is compared only with
  // those that have the same key.
  std::unordered_map<std::string, std::vector<local_id>> standing_;
  std::vector<local> locals_;
  std::unordered_map<std::string, local_id> ids_;
  std::vector<known_value> values_;
  std::unordered_map<std::uint64_t, value_id> value_ids_;
  std::vector<std::vector<transition>> table_;  // by local state and value
  int merges_done_ = 0;
  local_id starts_[kMaxActors] = {};
  std::string broken_;
};

}  // namespace forksight::ipc::test
