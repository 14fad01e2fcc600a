// What each actor does next, as a table: from a local state, and the value that it finds in the one word that it
// touches, to the next local state and the value that it leaves there. An entry is made by running the actor's code
// once. So a state of all is a few small numbers, and a step is a look-up.
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
constexpr std::uint32_t kSwaps = 2;  // the producers change places; the consumers do

class automaton {
 public:
  struct local {
    suspended at;
    int word = -1;  // that it touches next; -1: it is over
    // For a process that recovers: the guards that named the dead process, and that it has not looked at again since.
    std::uint8_t window = 0;
    bool recovers = false;
    local_id before = 0;  // the one that it was first met after, ...
    value_id by = 0;      // ... and the value found there
    local_id image[kSwaps] = {};
  };
  struct transition {
    local_id next = 0;
    value_id left = 0;
  };

  explicit automaton(const word_table& words);

  local_id start(std::uint32_t actor) const { return starts_[actor]; }
  const local& operator[](local_id id) const { return locals_[id]; }
  transition step(local_id from, value_id found);
  // Without the table: for the check of it. The memory is as it is.
  transition run(local_id from, value_id found);
  // One that has been killed: what it had done is all that is left of it.
  local_id dead(local_id from);

  value_id intern(std::uint64_t value);
  std::uint64_t value(value_id id) const { return values_[id].bits; }
  // Whose a guard is, by its value: a participant, or -1.
  int owner(value_id id) const { return values_[id].owner; }

  // What an actor or a word would be, had the two users changed places.
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
