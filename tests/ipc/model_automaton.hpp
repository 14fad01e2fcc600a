// A table of the steps of all actors. A step accesses one word of the shared memory. The key of an entry is the actor's
// local state, and the value that it finds in that word. The entry contains the next local state, and the value that
// the step leaves in the word. To make an entry, the actor's code runs once. With the table, the state of all actors
// consists of a few small numbers, and a step is a look-up.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model_fiber.hpp"
#include "model_world.hpp"

namespace forksight::ipc::test {

using local_id = std::uint32_t;
using value_id = std::uint16_t;
constexpr std::uint32_t kSwaps = 2;  // the two producers change places, or the two consumers do

class automaton {
 public:
  struct local {
    suspended at;
    int word = -1;  // the index of the word that the next step accesses; -1: the actor has ended
    // Only for a recovering process: a bit for each guard in which it found the dead process as owner. An access to the
    // guard of a slot first clears all bits.
    std::uint8_t window = 0;
    bool recovers = false;
    local_id before = 0;          // the local state whose step first led to this one
    value_id by = 0;              // the value that this step found
    local_id image[kSwaps] = {};  // the local state after the change of places, + 1; 0: not computed yet
  };
  struct transition {
    local_id next = 0;
    value_id left = 0;
  };

  explicit automaton(const word_table& words);

  local_id start(std::uint32_t actor) const { return starts_[actor]; }
  const local& operator[](local_id id) const { return locals_[id]; }
  transition step(local_id from, value_id found);
  // Runs the code of one step without the table, to make an entry or to check one. Writes `found` into the word that
  // the step accesses, and leaves the other words as they are.
  transition run(local_id from, value_id found);
  // The local state of an actor that was killed in `from`. It keeps only what the actor had done.
  local_id dead(local_id from);

  value_id intern(std::uint64_t value);
  std::uint64_t value(value_id id) const { return values_[id].bits; }
  // The participant that owns a guard with this value; -1: nobody does.
  int owner(value_id id) const { return values_[id].owner; }

  // The local state of an actor, or the value of a word, that would exist if the two users had exchanged their roles.
  local_id image(std::uint32_t swap, local_id of);
  value_id image(std::uint32_t swap, carried what, value_id of);

  std::size_t locals() const { return locals_.size(); }
  std::size_t transitions() const { return table_.size(); }
  const std::string& broken() const { return broken_; }

 private:
  struct known_value {
    std::uint64_t bits = 0;
    int owner = -1;
    std::int32_t images[kSwaps][4] = {{-1, -1, -1, -1}, {-1, -1, -1, -1}};
  };
  local_id intern(local what);
  local_id over(actor_view view);
  std::uint8_t window_after(local_id from, value_id found) const;

  const word_table& words_;
  std::vector<local> locals_;
  std::unordered_map<std::string, local_id> ids_;
  std::vector<known_value> values_;
  std::unordered_map<std::uint64_t, value_id> value_ids_;
  std::unordered_map<std::uint64_t, transition> table_;
  local_id starts_[kMaxActors] = {};
  std::string broken_;
};

}  // namespace forksight::ipc::test
