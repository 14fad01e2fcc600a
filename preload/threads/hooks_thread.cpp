// The hooks that make threads. They note which thread made a thread, where, and which function it runs.
#include <string.h>
#include <threads.h>

#include "guest/clock.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "loader/next.hpp"
#include "locks/wait_guard.hpp"
#include "record/own_ids.hpp"
#include "record/slots.hpp"
#include "record/thread_events.hpp"
#include "record/thread_records.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

// Called when the start routine has ended. Destructors of thread-local data run after this, and may take locks. So the
// slot belongs to the thread until the kernel confirms that the thread has ended.
void leave_thread(void* slot) { end_slot(static_cast<Slot*>(slot)); }

// Every thread that is made through the hooks begins with this function. If the thread ends by pthread_exit or by
// cancellation, the unwinder passes through this frame, and the clean-up runs. C11's start routine returns an int,
// which libc reads from the same register as a pointer.
template <class Result>
Result run_thread(void* argument) {
  auto* const slot = static_cast<Slot*>(argument);
  const auto start = reinterpret_cast<Result (*)(void*)>(slot->start_routine);
  void* const start_argument = reinterpret_cast<void*>(slot->argument);
  slot->tid = sys::gettid();
  slot->lock_tid = lock_tid();
  slot->thread_pointer = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  // glibc puts the thread's control block at the top of its stack, also on a stack that the program provides.
  slot->stack_top = slot->thread_pointer;
  t_slot = slot;
  t_fast = fast_slot(slot);
  thread_begun(*slot);
  slot->state.store(SlotState::kLive, std::memory_order_release);
  _pthread_cleanup_buffer buffer;
  const bool is_pushed = push_cleanup(buffer, leave_thread, slot);
  const Result result = start(start_argument);
  pop_cleanup(is_pushed, buffer);
  leave_thread(slot);
  return result;
}

void describe(Slot& slot, std::uint64_t start, void* argument, const Site& site) {
  const Slot* const creator = own_slot();
  slot.start_routine = start;
  slot.argument = reinterpret_cast<std::uint64_t>(argument);
  slot.created_ns = now_ns();
  if (creator != nullptr) {
    slot.creator_tid = creator->tid;
    // The kernel gives a new thread the name of its creator.
    memcpy(slot.name, creator->name, sizeof slot.name);
  }
  keep_creation_stack(slot, creator, site);
  thread_created(slot);
}

// `create(run, with)` makes a thread that calls run(with). Always inlined, so that the frame used here is the hook's.
template <class Result, class Create>
__attribute__((always_inline)) inline int create_thread(const void* thread, Result (*start)(void*), void* argument,
                                                        Create create) {
  initialise();
  g_had_threads.store(true, std::memory_order_relaxed);
  notice_unseen_fork();
  try_filter(TryBy::kClone3);
  Slot* const slot = reserve_slot();
  if (slot == nullptr) return create(start, argument);
  describe(*slot, reinterpret_cast<std::uint64_t>(start), argument, FORKSIGHT_FRAME().site());
  const std::uint64_t life = slot->life_record;
  const int result = create(run_thread<Result>, slot);
  if (result != 0) {
    release_slot(slot);
  } else {
    thread_made(life, thread);
  }
  return result;
}

}  // namespace

FORKSIGHT_EXPORT(int, pthread_create, pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                 void* argument) {
  return create_thread(thread, start, argument, [=](void* (*run)(void*), void* with) {
    return FORKSIGHT_NEXT(pthread_create)(thread, attributes, run, with);
  });
}

FORKSIGHT_EXPORT(int, thrd_create, thrd_t* thread, thrd_start_t start, void* argument) {
  return create_thread(thread, start, argument,
                       [=](thrd_start_t run, void* with) { return FORKSIGHT_NEXT(thrd_create)(thread, run, with); });
}

FORKSIGHT_EXPORT(int, pthread_setname_np, pthread_t thread, const char* name) {
  const int result = FORKSIGHT_NEXT(pthread_setname_np)(thread, name);
  if (result != 0) return result;
  const auto pointer = static_cast<std::uint64_t>(thread);
  Slot* const slot =
      t_slot != nullptr && t_slot->thread_pointer == pointer ? t_slot : find_slot_by_thread_pointer(pointer);
  if (slot != nullptr) {
    strncpy(slot->name, name, sizeof slot->name - 1);
    slot->record = 0;  // the next fork records the thread again
  }
  return result;
}
