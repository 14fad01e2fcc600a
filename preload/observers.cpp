// Expands observers.def: the function of each event calls its receivers directly, one after the other.
#include "cuda/cuda.hpp"
#include "foresight/foresight.hpp"
#include "foresight/lives.hpp"
#include "loader/library_events.hpp"
#include "locks/guard_runtime.hpp"
#include "locks/lock_events.hpp"
#include "mpi/mpi.hpp"
#include "openmp/runtimes.hpp"
#include "python/python.hpp"
#include "record/module_records.hpp"
#include "record/thread_events.hpp"
#include "record/touch_events.hpp"
#include "threads/ended_holders.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

enum class Event {
  library_added,
  library_removed,
  libraries_changed,
  libraries_settled,
  libraries_are_awaited,
  thread_created,
  thread_begun,
  thread_made,
  foreign_thread_noticed,
  thread_awaited,
  thread_joined,
  slot_is_needed,
  lock_acquired,
  lock_released,
  held_moved,
  touch_recorded,
};

template <bool is_meant, class Function, class... Arguments>
inline void tell(Function function, Arguments&... arguments) {
  if constexpr (is_meant) function(arguments...);
}

template <Event event, class... Arguments>
inline void tell_all(Arguments&... arguments) {
#define FORKSIGHT_OBSERVER(of, function) tell<event == Event::of>(function, arguments...);
#include "observers.def"
#undef FORKSIGHT_OBSERVER
}

template <bool is_meant, class Answer, class Function, class... Arguments>
inline Answer ask([[maybe_unused]] Function function, Arguments&... arguments) {
  if constexpr (is_meant) return function(arguments...);
  return Answer{};
}

// Calls the receivers of the event until one answers something other than 0 or false, and returns that answer. Returns
// 0 or false if no receiver does.
template <Event event, class Answer, class... Arguments>
inline Answer ask_all(Arguments&... arguments) {
  Answer answer{};
#define FORKSIGHT_OBSERVER(of, function) \
  if (answer == Answer{}) answer = ask<event == Event::of, Answer>(function, arguments...);
#include "observers.def"
#undef FORKSIGHT_OBSERVER
  return answer;
}

}  // namespace

void library_added(Module& module) { tell_all<Event::library_added>(module); }
void library_removed(Module& module) { tell_all<Event::library_removed>(module); }
void libraries_changed(bool some_are_gone) { tell_all<Event::libraries_changed>(some_are_gone); }
void libraries_settled() { tell_all<Event::libraries_settled>(); }
bool libraries_are_awaited() { return ask_all<Event::libraries_are_awaited, bool>(); }

void thread_created(Slot& slot) { tell_all<Event::thread_created>(slot); }
void thread_begun(Slot& slot) { tell_all<Event::thread_begun>(slot); }
void thread_made(std::uint64_t life, const void* at) { tell_all<Event::thread_made>(life, at); }
void foreign_thread_noticed() { tell_all<Event::foreign_thread_noticed>(); }
std::uint64_t thread_awaited(std::uint64_t thread_pointer) {
  return ask_all<Event::thread_awaited, std::uint64_t>(thread_pointer);
}
void thread_joined(std::uint64_t thread_pointer, std::uint64_t awaited) {
  tell_all<Event::thread_joined>(thread_pointer, awaited);
}
bool slot_is_needed(Slot& slot) { return ask_all<Event::slot_is_needed, bool>(slot); }

void lock_acquired(Slot* slot, const volatile void* lock, trace::LockKind kind, bool waits) {
  tell_all<Event::lock_acquired>(slot, lock, kind, waits);
}
void lock_released(Slot* slot, const volatile void* lock) { tell_all<Event::lock_released>(slot, lock); }
void held_moved(Slot* slot, HeldLock* to, const HeldLock* from) { tell_all<Event::held_moved>(slot, to, from); }

void touch_recorded(std::uint64_t touch) { tell_all<Event::touch_recorded>(touch); }

}  // namespace forksight
