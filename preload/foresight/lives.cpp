#include "foresight/lives.hpp"

#include "foresight/foresight.hpp"
#include "foresight/hold_times.hpp"
#include "foresight/key_table.hpp"
#include "forksight/trace/foresight.hpp"
#include "guest/config.hpp"
#include "guest/memory.hpp"
#include "loader/modules.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::RecordType;
using trace::ThreadLifeRecord;

struct Lives {
  KeyTable<0> keys;  // one key for each pthread_t
  // ref to the record of the life that has this pthread_t; 0: none, or that thread was joined
  std::atomic<std::uint64_t> of[kPlaces];
};

constinit Lives* g_table = nullptr;
constinit std::atomic<std::uint64_t> g_clock{0};

std::uint64_t next_moment() { return g_clock.fetch_add(1, std::memory_order_relaxed) + 1; }

ThreadLifeRecord* life_at(std::uint64_t record) {
  return find_record<ThreadLifeRecord>(record, RecordType::kThreadLife);
}

// The entry of this pthread_t, added now if needed. Null: the table is full.
std::atomic<std::uint64_t>* place_of(std::uint64_t thread_pointer) {
  const std::uint64_t key = KeyTable<0>::key_of(mix(kSeed, thread_pointer));
  std::uint32_t at = g_table->keys.find(key);
  if (at == kNoPlace) at = g_table->keys.add(key);
  return at == kNoPlace ? nullptr : &g_table->of[at];
}

void mark(std::uint64_t life_record, std::uint32_t flag) {
  ThreadLifeRecord* const life = life_at(life_record);
  if (life != nullptr) __atomic_fetch_or(&life->flags, flag, __ATOMIC_RELEASE);
}

}  // namespace

std::size_t lives_bytes() { return sizeof(Lives); }
void start_lives(void* memory) { g_table = static_cast<Lives*>(memory); }

std::uint64_t life_of(Slot& slot) {
  if (slot.life == 0) slot.moment = slot.life = next_moment();
  return slot.life;
}

std::uint64_t ensure_life_record(Slot& slot) {
  if (slot.life_record == 0) {
    slot.life_record = append(RecordType::kThreadLife, ThreadLifeRecord{0, life_of(slot), 0, 0, trace::kLifeBegun, 0});
  }
  return slot.life_record;
}

std::uint64_t moment_of(const Slot& slot) { return slot.moment; }

void begin_life(Slot& slot) {
  if (!tracks_lock_use()) return;
  Slot* const creator = own_slot();
  if (begin_time_with_threads() && creator != nullptr) note_early(*creator);
  const bool has_trace = open_trace();
  if (has_trace && module_count() == 0) refresh_modules();
  const std::uint64_t parent = has_trace && creator != nullptr ? ensure_life_record(*creator) : 0;
  const std::uint64_t life = life_of(slot);
  if (!has_trace) return;
  if (creator != nullptr) creator->moment = life;
  slot.life_record = append(RecordType::kThreadLife, ThreadLifeRecord{parent, life, 0, 0, 0, 0});
}

// Enters the life of the calling thread into the table. Called by each new thread, before any code of the program runs
// in it. An earlier thread with the same pthread_t has ended by then.
void note_begun(Slot& slot) {
  if (!tracks_lock_use() || slot.life_record == 0) return;
  std::atomic<std::uint64_t>* const place = place_of(slot.thread_pointer);
  if (place != nullptr) {
    place->store(slot.life_record, std::memory_order_release);
  } else {
    mark(slot.life_record, trace::kLifeUnfollowed);
  }
  mark(slot.life_record, trace::kLifeBegun);
}

// Enters the life of a new thread into the table. The creator calls this, because it may join the thread before the
// thread has begun to run. A thread that has begun has entered its life itself, and its pthread_t may belong to another
// thread by now. So this function reads the entry first, and does nothing if the thread has begun. It replaces the
// entry only if no other thread has changed the entry since. `at`: the memory in which the creator stored the
// pthread_t. The program may have freed this memory, so it is read by read_memory().
void note_made(std::uint64_t life_record, const void* at) {
  std::uint64_t thread_pointer = 0;
  if (!tracks_lock_use() || life_record == 0) return;
  if (read_memory(at, &thread_pointer, sizeof thread_pointer) != sizeof thread_pointer) return;
  std::atomic<std::uint64_t>* const place = place_of(thread_pointer);
  if (place == nullptr) return;
  std::uint64_t was = place->load(std::memory_order_acquire);
  const ThreadLifeRecord* const life = life_at(life_record);
  if (life == nullptr || (__atomic_load_n(&life->flags, __ATOMIC_ACQUIRE) & trace::kLifeBegun) != 0) return;
  place->compare_exchange_strong(was, life_record, std::memory_order_acq_rel);
}

void note_foreign_thread() {
  if (tracks_lock_use()) begin_time_with_threads();
}

std::uint64_t find_life(std::uint64_t thread_pointer) {
  if (!tracks_lock_use()) return 0;
  const std::uint32_t at = g_table->keys.find(KeyTable<0>::key_of(mix(kSeed, thread_pointer)));
  return at == kNoPlace ? 0 : g_table->of[at].load(std::memory_order_acquire);
}

void note_joined(std::uint64_t thread_pointer, std::uint64_t life_record) {
  Slot* const joiner = own_slot();
  ThreadLifeRecord* const life = life_at(life_record);
  if (joiner == nullptr || life == nullptr) return;
  // A new thread may have the same pthread_t already. Then the entry stays unchanged.
  std::uint64_t was = life_record;
  std::atomic<std::uint64_t>* const place = place_of(thread_pointer);
  if (place != nullptr) place->compare_exchange_strong(was, 0, std::memory_order_acq_rel);
  const std::uint64_t by = ensure_life_record(*joiner);
  joiner->moment = next_moment();
  __atomic_store_n(&life->joiner, by, __ATOMIC_RELAXED);
  __atomic_store_n(&life->joined, joiner->moment, __ATOMIC_RELEASE);
}

bool was_joined_by(std::uint64_t life_record, std::uint64_t joiner) {
  const ThreadLifeRecord* const life = life_at(life_record);
  return life != nullptr && joiner != 0 && life->joined != 0 && life->joiner == joiner;
}

void begin_life_in_child(Slot& self) {
  self.life = 0;
  self.life_record = 0;
}

}  // namespace forksight
