// Threads that take signals by waiting for them: noted as a wait, so that a fork can tell which signals its child has
// nobody for. The set is read at the fork, out of the waiting thread's memory.
#include <signal.h>

#include "next.hpp"
#include "site.hpp"
#include "wait_guard.hpp"

#include "guest.hpp"

using namespace forksight;

namespace {

template <class Wait>
__attribute__((always_inline)) inline int wait_for(const sigset_t* set, Wait wait) {
  Slot* const slot = own_slot();
  if (slot == nullptr) return wait();
  return note_wait(slot, trace::WaitKind::kSignals, reinterpret_cast<std::uint64_t>(set), FORKSIGHT_FRAME(), nullptr,
                   wait);
}

}  // namespace

FORKSIGHT_EXPORT(int, sigwait, const sigset_t* set, int* number) {
  return wait_for(set, [=] { return FORKSIGHT_NEXT(sigwait)(set, number); });
}

FORKSIGHT_EXPORT(int, sigwaitinfo, const sigset_t* set, siginfo_t* info) {
  return wait_for(set, [=] { return FORKSIGHT_NEXT(sigwaitinfo)(set, info); });
}

FORKSIGHT_EXPORT(int, sigtimedwait, const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  return wait_for(set, [=] { return FORKSIGHT_NEXT(sigtimedwait)(set, info, timeout); });
}
