// The memory that is modelled, word by word, and who takes part.
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

// What a consumer does: takes a message and releases it, or parks it; takes a parked message and releases it, or
// requeues it.
enum class act : std::uint8_t { consume, park, clear, requeue };
// What is there before anybody moves: nothing, or a message of number kProducers + 1.
enum class first_message : std::uint8_t { none, queued, returned, parked };

struct plan_of_run {
  bool redelivers = false;
  std::uint32_t recoverers = 1;
  int victim = -1;  // -1: nobody dies
  std::uint32_t producers = kProducers, consumers = kConsumers;
  first_message first = first_message::none;
  std::array<act, kConsumers> acts{};
  bool parks_at_once = false;  // a message is parked when the first consumer has died with it
  bool asks_for_end = false;   // a consumer that finds nothing asks whether something can still come

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

// Who may touch a word.
enum class word_kind : std::uint8_t {
  common,    // anybody, at any time
  guard,     // a slot's or a buffer's word: says who owns it
  fact,      // what a guard guards: its owner
  recovery,  // of the participants' table and for wakes: who recovers
};
// What of a word is another's where two users change places.
enum class carried : std::uint8_t { nothing, owner, number, pid };

struct word_info {
  char* at = nullptr;
  std::uint8_t size = 0;
  word_kind kind = word_kind::common;
  carried what = carried::nothing;
  std::uint8_t guard = 0;  // of a fact: the index of its guard among the words
  std::uint8_t bit = 0;    // of a guard: its bit in a set of guards
};

class word_table {
 public:
  word_table();
  std::size_t size() const { return all_.size(); }
  const word_info& operator[](std::size_t index) const { return all_[index]; }
  // Ends the program if it is none of ours: then the model is no longer that of the ring.
  int find(const void* at) const;
  // Written and read by nobody who decides by it.
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
