// Threads: who made them, where, and what they run.
#include <string.h>

#include "clock.hpp"
#include "next.hpp"
#include "orphans.hpp"
#include "site.hpp"
#include "slots.hpp"
#include "sys.hpp"
#include "thread_records.hpp"

#include "guest.hpp"

using namespace forksight;

namespace {

using StartRoutine = void* (*)(void*);

// The outermost frame of every thread that is made through the hook. A thread that leaves by pthread_exit or by
// cancellation is unwound through here without a stop; its slot is found dead later.
void* run_thread(void* argument) {
  auto* const slot = static_cast<Slot*>(argument);
  const auto start = reinterpret_cast<StartRoutine>(slot->start_routine);
  void* const start_argument = reinterpret_cast<void*>(slot->argument);
  slot->tid = sys::gettid();
  slot->thread_pointer = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  // glibc puts the thread's control block at the top of its stack, also of one that the program brought.
  slot->stack_top = slot->thread_pointer;
  t_slot = slot;
  t_fast = locks_are_watched() ? nullptr : slot;
  slot->state.store(SlotState::kLive, std::memory_order_release);
  void* const result = start(start_argument);
  // Destructors of thread-local data run after this, and may lock: the slot stays the thread's own until the kernel
  // confirms that the thread is gone.
  end_slot(slot);
  return result;
}

void describe(Slot& slot, StartRoutine start, void* argument, const Site& site) {
  const Slot* const creator = own_slot();
  slot.start_routine = reinterpret_cast<std::uint64_t>(start);
  slot.argument = reinterpret_cast<std::uint64_t>(argument);
  slot.created_ns = now_ns();
  if (creator != nullptr) {
    slot.creator_tid = creator->tid;
    // The kernel gives a new thread its creator's name.
    memcpy(slot.name, creator->name, sizeof slot.name);
  }
  keep_creation_stack(slot, creator, site);
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_create, pthread_t* thread, const pthread_attr_t* attributes, StartRoutine start,
                 void* argument) {
  const auto create = FORKSIGHT_NEXT(pthread_create);
  g_had_threads.store(true, std::memory_order_relaxed);
  Slot* const slot = reserve_slot();
  if (slot == nullptr) return create(thread, attributes, start, argument);
  describe(*slot, start, argument, FORKSIGHT_FRAME().site());
  const int result = create(thread, attributes, run_thread, slot);
  if (result != 0) release_slot(slot);
  return result;
}

FORKSIGHT_EXPORT(int, pthread_setname_np, pthread_t thread, const char* name) {
  const int result = FORKSIGHT_NEXT(pthread_setname_np)(thread, name);
  if (result != 0) return result;
  const auto pointer = static_cast<std::uint64_t>(thread);
  Slot* const slot =
      t_slot != nullptr && t_slot->thread_pointer == pointer ? t_slot : find_slot_by_thread_pointer(pointer);
  if (slot != nullptr) {
    strncpy(slot->name, name, sizeof slot->name - 1);
    slot->record = 0;  // the next fork tells it again
  }
  return result;
}
