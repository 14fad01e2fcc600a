#include "foresight/hold_times.hpp"

#include <cpuid.h>
#include <string.h>
#include <x86intrin.h>

#include "foresight/foresight.hpp"
#include "foresight/key_table.hpp"
#include "foresight/lives.hpp"
#include "foresight/lock_number.hpp"
#include "forksight/trace/foresight.hpp"
#include "guest/clock.hpp"
#include "guest/config.hpp"
#include "guest/mappings.hpp"
#include "locks/held.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::LockKind;

constexpr std::size_t kHoldStackBytes = 2048;
constexpr std::size_t kTouchStackBytes = 16U << 10U;
// The number of bits that say which locks a child has examined. The bit of a lock is the lock's number modulo
// kExaminedBits.
constexpr std::uint32_t kExaminedBits = 1U << 16U;

// Says when a lock was held. The window is the time since the process made its second thread. The window is divided
// into slices. The length of a slice is a power of two, and doubles when the window has outgrown the slices.
struct Timeline {
  static constexpr std::uint32_t kFirstShift = 14;

  std::uint64_t held[trace::kTimeSlices];
  std::uint32_t shift;  // `ticks >> shift` is the number of the slice

  void widen() {
    for (std::uint32_t i = 0; i < trace::kTimeSlices; ++i) {
      held[i] = i < trace::kTimeSlices / 2 ? held[2 * i] + held[2 * i + 1] : 0;
    }
    ++shift;
  }
  // Adds a time for which the lock was held. `from`, `to`: ticks since the window began.
  void add(std::uint64_t from, std::uint64_t to) {
    while (to >> shift >= trace::kTimeSlices) widen();
    while (from < to) {
      const std::uint64_t slice = from >> shift;
      const std::uint64_t end = (slice + 1) << shift;
      held[slice] += (end < to ? end : to) - from;
      from = end;
    }
  }
};

// How often and how long one thread held one lock. Only that thread writes this struct. A forked child reads a copy,
// which does not change any more.
struct Hold {
  std::uint64_t lock;  // its address, tagged with its kind
  std::uint64_t number;
  std::uint64_t life;
  std::uint64_t life_record;
  std::uint64_t thread;  // ref to kThread
  std::uint64_t stack;   // ref to kStack
  std::uint64_t gate;    // gate number of a lock that the thread held every time when it held this one; 0: none
  std::uint64_t ticks;
  std::uint64_t times;
  const Slot* slot;
  Timeline when;
  bool is_whole;
};

struct Holds {
  KeyTable<1> keys;
  Hold at[kPlaces];
  std::uint64_t examined[kExaminedBits / 64];
};

// What is known about the fork that made this process.
struct Frozen {
  std::uint64_t fork_record;
  std::uint64_t window_ticks;  // 0: not a child, or its parent had one thread
  std::uint64_t window_ns;
  std::uint64_t life;         // number of the forking thread's life (lives.hpp)
  std::uint64_t life_record;  // 0: none
  std::uint64_t next_number;  // locks with this number or a higher one were made in the child
  std::uint32_t protected_count;
  std::uint64_t protected_numbers[kMaxHeldLocks];  // gate numbers of the locks that the forking thread held
};

constinit Holds* g_holds = nullptr;
constinit Frozen g_frozen = {};
constinit std::atomic<std::uint64_t> g_since{0};
constinit std::uint64_t g_since_ns = 0;
constinit bool g_has_steady_tsc = false;
constinit std::uint64_t g_full_note = 0;

// True if the time stamp counters of all processors run at one constant rate, whatever the frequency of the processor
// is (Intel SDM 18.17.1; AMD APM 3, function 8000_0007).
bool has_steady_tsc() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1U << 8U) != 0;
}

std::uint64_t ticks() { return g_has_steady_tsc && g_may_read_clock ? __rdtsc() : now_ns(); }

// The gate number of the outermost lock that the thread took before `entry` and holds exclusively; 0: none.
std::uint64_t gate_of(const Slot& slot, const HeldLock* entry) {
  for (const HeldLock* other = &slot.held[1]; other < entry; ++other) {
    const std::uint64_t number = gate_number(&slot, other);
    if (number != 0 && lock_kind(other->lock) != LockKind::kRwlockRead) return number;
  }
  return 0;
}

__attribute__((noinline, cold)) void fill_hold(Hold& hold, Slot& slot, const HeldLock* entry, std::uint64_t number) {
  hold = {};
  if (!open_trace()) return;
  hold.lock = entry->lock;
  hold.number = number;
  hold.life_record = ensure_life_record(slot);
  hold.life = life_of(slot);
  hold.thread = ensure_thread_record(slot);
  hold.stack = append_stack(entry->site, &slot, kHoldStackBytes, false, Importance::kFact);
  hold.gate = gate_of(slot, entry);
  hold.slot = &slot;
  hold.when.shift = Timeline::kFirstShift;
  compiler_fence();
  hold.is_whole = true;
}

bool is_protected(std::uint64_t number) {
  for (std::uint32_t i = 0; number != 0 && i < g_frozen.protected_count; ++i) {
    if (g_frozen.protected_numbers[i] == number) return true;
  }
  return false;
}

// True if a thread other than the forking one had this hold, and could have held the lock at the fork. The other thread
// could not hold the lock if the forking thread held the gate of the hold, or had joined the other thread. A join by a
// third thread is not taken into account.
bool counts(const Hold& hold) {
  return hold.is_whole && hold.life != g_frozen.life && hold.ticks != 0 && !is_protected(hold.gate) &&
         !was_joined_by(hold.life_record, g_frozen.life_record);
}

bool lived_at_fork(const Hold& hold) {
  return hold.slot->epoch + 1 == epoch() && hold.slot->life == hold.life &&
         hold.slot->state.load(std::memory_order_relaxed) == SlotState::kLive;
}

// True at the first call for each lock in a child. If there are more locks than bits, the result is never true for some
// locks.
bool look_first(std::uint64_t number) {
  const std::uint64_t bit = std::uint64_t{1} << number % 64;
  std::uint64_t& word = g_holds->examined[number % kExaminedBits / 64];
  return (__atomic_fetch_or(&word, bit, __ATOMIC_RELAXED) & bit) == 0;
}

struct Sum {
  std::uint64_t ticks = 0;
  std::uint64_t times = 0;
  std::uint32_t threads = 0;
  const Hold* longest = nullptr;  // the longest hold of a thread that lived at the fork
  const Hold* longest_read = nullptr;
};

// Visits the holds of this lock that the thread of `entry` would have had to wait for. A reader does not wait for
// readers.
template <class Visit>
void for_each_hold(const HeldLock* entry, std::uint64_t number, Visit visit) {
  const bool by_reader = lock_kind(entry->lock) == LockKind::kRwlockRead;
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    if (KeyTable<1>::age(g_holds->keys.keys[i].load(std::memory_order_relaxed)) != 1) continue;
    const Hold& hold = g_holds->at[i];
    if (hold.number != number || !counts(hold)) continue;
    const bool is_read = lock_kind(hold.lock) == LockKind::kRwlockRead;
    if (!is_read || !by_reader) visit(hold, is_read);
  }
}

// Adds up the times of all writers, and the longest time of a reader. Several readers can hold a lock at once, so the
// sum of their times would be too large.
__attribute__((noinline)) Sum sum_up(const HeldLock* entry, std::uint64_t number) {
  Sum sum;
  for_each_hold(entry, number, [&](const Hold& hold, bool is_read) {
    if (!is_read) {
      sum.ticks += hold.ticks;
    } else if (sum.longest_read == nullptr || hold.ticks > sum.longest_read->ticks) {
      sum.longest_read = &hold;
    }
    sum.times += hold.times;
    if (!lived_at_fork(hold)) return;
    ++sum.threads;
    if (sum.longest == nullptr || hold.ticks > sum.longest->ticks) sum.longest = &hold;
  });
  if (sum.longest_read != nullptr) sum.ticks += sum.longest_read->ticks;
  return sum;
}

void add_slices(const Timeline& when, std::uint32_t shift, std::uint64_t* slices) {
  if (when.shift > shift) return;
  for (std::uint32_t i = 0; i < trace::kTimeSlices; ++i) slices[i >> (shift - when.shift)] += when.held[i];
}

// Adds up, for each slice of the window, how long the other threads held the lock. The sums are computed in the record
// itself, because there is no room for them on the stack.
__attribute__((noinline)) void write_slices(const HeldLock* entry, std::uint64_t number, const Hold* longest_read,
                                            trace::RacyTouchRecord& touch) {
  std::uint32_t shift = Timeline::kFirstShift;
  while (g_frozen.window_ticks >> shift >= trace::kTimeSlices) ++shift;
  touch.slice_ticks = std::uint64_t{1} << shift;
  memset(touch.slices, 0, sizeof touch.slices);
  for_each_hold(entry, number, [&](const Hold& hold, bool is_read) {
    if (!is_read || &hold == longest_read) add_slices(hold.when, shift, touch.slices);
  });
}

// Not inlined, like sum_up(): otherwise the stack frames of both functions would exist at the same time in
// look_at_others().
__attribute__((noinline)) void write_touch(Slot& slot, const HeldLock* entry, std::uint64_t number, const Sum& sum) {
  const std::uint64_t stack = append_stack(entry->site, &slot, kTouchStackBytes, false, Importance::kFinding);
  Record record(trace::RecordType::kRacyTouch, sizeof(trace::RacyTouchRecord), Importance::kFinding);
  if (!record) return;
  auto& touch = *record.as<trace::RacyTouchRecord>();
  touch.fork = g_frozen.fork_record;
  touch.lock = lock_address(entry->lock);
  touch.stack = stack;
  touch.holder = sum.longest->thread;
  touch.held_stack = sum.longest->stack;
  touch.held_ticks = sum.ticks;
  touch.window_ticks = g_frozen.window_ticks;
  touch.window_ns = g_frozen.window_ns;
  touch.times = sum.times;
  touch.threads = sum.threads;
  touch.kind = static_cast<std::uint32_t>(lock_kind(entry->lock));
  write_slices(entry, number, sum.longest_read, touch);
  record.commit();
}

__attribute__((noinline, cold)) void look_at_others(Slot& slot, const HeldLock* entry, std::uint64_t number) {
  const Sum sum = sum_up(entry, number);
  const auto* const lock = reinterpret_cast<const void*>(lock_address(entry->lock));
  if (sum.longest != nullptr && !is_in_shared_mapping(lock)) write_touch(slot, entry, number, sum);
}

}  // namespace

std::size_t hold_times_bytes() { return g_config.predict ? sizeof(Holds) : 0; }

void start_hold_times(void* memory) {
  g_holds = static_cast<Holds*>(memory);
  g_has_steady_tsc = has_steady_tsc();
}

bool begin_time_with_threads() {
  if (g_since.load(std::memory_order_relaxed) != 0) return false;
  std::uint64_t none = 0;
  if (!g_since.compare_exchange_strong(none, ticks() | 1, std::memory_order_relaxed)) return false;
  g_since_ns = now_ns();
  return true;
}

void begin_hold(Slot& slot, const HeldLock* entry) {
  HeldNote& note = note_of(&slot, entry);
  const bool is_read = lock_kind(entry->lock) == LockKind::kRwlockRead;
  const std::uint64_t key = KeyTable<1>::key_of(mix(mix(mix(kSeed, life_of(slot)), note.number), is_read ? 2 : 1));
  std::uint32_t at = g_holds->keys.find(key);
  if (at == kNoPlace) {
    at = g_holds->keys.add(key);
    if (at == kNoPlace) return count_in_note(g_full_note, trace::NoteCode::kHoldTimesFull);
    fill_hold(g_holds->at[at], slot, entry, note.number);
  }
  Hold& hold = g_holds->at[at];
  if (hold.gate != 0 && hold.gate != gate_of(slot, entry)) hold.gate = 0;
  note.hold = at;
  note.since = ticks();
}

void end_hold(const Slot& slot, const HeldLock* entry) {
  HeldNote& note = note_of(&slot, entry);
  if (note.since == 0) return;
  const std::uint64_t now = ticks();
  Hold& hold = g_holds->at[note.hold];
  const std::uint64_t begin = g_since.load(std::memory_order_relaxed);
  // The time stamp counters of two processors may differ by a few ticks, so `now` may be lower than `note.since`.
  if (now > note.since && note.since >= begin) {
    hold.ticks += now - note.since;
    hold.when.add(note.since - begin, now - begin);
  }
  ++hold.times;
  note.since = 0;
}

void open_gate(const Slot& slot, const HeldLock* entry) {
  if (g_holds == nullptr || !g_config.predict) return;
  const std::uint64_t number = gate_number(&slot, entry);
  for (const HeldLock* other = entry + 1; number != 0 && other < slot.top; ++other) {
    const HeldNote& note = note_of(&slot, other);
    if (!is_followed(other) || note.since == 0) continue;
    Hold& hold = g_holds->at[note.hold];
    if (hold.gate == number) hold.gate = 0;
  }
}

void freeze_hold_times(const Slot& self) {
  const std::uint64_t since = g_since.exchange(0, std::memory_order_relaxed);
  if (g_holds == nullptr || !g_config.predict) return;
  g_frozen.fork_record = self.fork_record;
  g_frozen.window_ticks = since == 0 ? 0 : ticks() - since;
  g_frozen.window_ns = since == 0 ? 0 : now_ns() - g_since_ns;
  g_frozen.life = self.life;
  g_frozen.life_record = self.life_record;
  g_frozen.next_number = next_lock_number();
  g_frozen.protected_count = 0;
  for (const HeldLock* entry = &self.held[1]; entry < self.top; ++entry) {
    const std::uint64_t number = gate_number(&self, entry);
    if (number == 0) continue;
    g_frozen.protected_numbers[g_frozen.protected_count++] = number;
    if (is_followed(entry)) note_of(&self, entry).since = 0;  // not timed here: the parent took the lock
  }
  g_full_note = 0;
  memset(g_holds->examined, 0, sizeof g_holds->examined);
}

void touch_racy(Slot& slot, const HeldLock* entry) {
  const std::uint64_t number = note_of(&slot, entry).number;
  if (g_frozen.window_ticks == 0 || number >= g_frozen.next_number || !look_first(number)) return;
  if (!is_protected(number)) look_at_others(slot, entry, number);
}

}  // namespace forksight
