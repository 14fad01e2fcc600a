// The modelled memory, word by word, and the actors that use it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "local_ring.hpp"

namespace forksight::ipc::test {

constexpr std::uint32_t kProducers = 2, kConsumers = 2, kUsers = kProducers + kConsumers;
constexpr std::uint32_t kMaxRecoverers = 2, kMaxActors = kUsers + kMaxRecoverers;
constexpr std::uint32_t kSlots = 2, kBuffers = 2;

using memory_of_ring = local_ring<kSlots, kBuffers, kUsers>;

// What a consumer does. consume: takes a message and releases it. park: takes a message and parks it. clear: takes a
// parked message and releases it. requeue: takes a parked message and requeues it.
enum class act : std::uint8_t { consume, park, clear, requeue };
// What the ring contains before the first step: nothing, or a message with the number kProducers + 1 in that state.
enum class first_message : std::uint8_t { none, queued, returned, parked };

struct plan_of_run {
  bool redelivers = false;
  std::uint32_t recoverers = 1;
  int victim = -1;  // the user that may be killed; -1: none
  std::uint32_t producers = kProducers, consumers = kConsumers;
  first_message first = first_message::none;
  std::array<act, kConsumers> acts{};
  bool parks_at_once = false;  // with redeliver, a message is parked as soon as one consumer has died with it
  bool asks_for_end = false;   // a consumer that finds no message asks whether one can still come

  act act_of(std::uint32_t user) const { return acts[user - kProducers]; }
  bool has(act one) const {
    for (std::uint32_t i = 0; i < consumers; ++i) {
      if (acts[i] == one) return true;
    }
    return false;
  }

  bool takes_part(std::uint32_t user) const {
    return user < kProducers ? user < producers : user - kProducers < consumers;
  }
};

struct world {
  memory_of_ring memory{};
  detail::ring view;
  plan_of_run plan;
};
inline world g_world;

// The actors that may access a word, and when.
enum class word_kind : std::uint8_t {
  common,    // every actor, at any time
  guard,     // the word of a slot or buffer, which names its owner: every actor may read it
  fact,      // a word that a guard guards: only the guard's owner, or a process that recovers the dead owner
  recovery,  // the table of participants, header::waiting, header::last_producer: only recovering processes
};
// The part of a word's value that changes if two users exchange their roles.
enum class carried : std::uint8_t { nothing, owner, number, pid };

struct word_info {
  char* at = nullptr;
  std::uint8_t size = 0;
  word_kind kind = word_kind::common;
  carried what = carried::nothing;
  std::uint8_t guard = 0;  // only for a fact: the index of its guard in the table
  std::uint8_t bit = 0;    // only for a guard: the number of its bit in a set of guards
};

class word_table {
 public:
  word_table();
  std::size_t size() const { return all_.size(); }
  const word_info& operator[](std::size_t index) const { return all_[index]; }
  // Returns the index of the word at that address. If the table does not contain the word, the model no longer fits the
  // ring, and the program ends with exit status 3.
  int find(const void* at) const;
  // True if no actor's decision depends on that word. The model then does not count an access to it as a step.
  static bool is_ignored(const void* at);

 private:
  template <class T>
  int add(detail::shared_word<T>& word, word_kind kind, carried what = carried::nothing, int guard = -1);
  std::vector<word_info> all_;
  std::uint8_t guards_ = 0;
};

std::uint64_t read_word(const word_info& of);
void write_word(const word_info& of, std::uint64_t value);

}  // namespace forksight::ipc::test
