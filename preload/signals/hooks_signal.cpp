// The hooks of functions that wait for signals. sigwait(), sigwaitinfo() and sigtimedwait() note the wait in the
// thread's slot, so that a fork can record which signals its lost threads waited for. The fork reads the set of signals
// from the memory of the waiting thread. In a child, all hooks of this file, also those of sigsuspend() and pause(),
// make one more check. The child may wait without a deadline, and only for signals of timers that the child lost at its
// fork. The hooks record such a wait before the child blocks.
#include <signal.h>
#include <unistd.h>

#include "guest/memory.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "loader/lazy_next.hpp"
#include "loader/next.hpp"
#include "locks/wait_guard.hpp"
#include "signals/timers.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

// No thread can wait for SIGKILL and SIGSTOP. The signals 32 and 33 belong to libc.
constexpr std::uint64_t kUnwaitableSignals =
    std::uint64_t{1} << (SIGKILL - 1) | std::uint64_t{1} << (SIGSTOP - 1) | std::uint64_t{3} << 31U;

struct TimerWait {
  std::uint64_t touch;
  std::uint64_t signals;
};

// Called before a wait for the signals in `set`. If `is_mask` is true, the wait is for all signals that are not in
// `set`. If the set cannot be read, nothing is recorded. The kernel then usually refuses the call, too.
__attribute__((noinline, cold)) TimerWait enter_timer_wait(const sigset_t* set, bool is_mask, const Site& site) {
  std::uint64_t signals = 0;
  if (read_memory(set, &signals, sizeof signals) != sizeof signals) return {0, 0};
  if (is_mask) signals = ~(signals | kUnwaitableSignals);
  return {begin_timer_wait(signals, site), signals};
}

template <class Wait, class GotSignal>
__attribute__((always_inline)) inline int wait_for(const sigset_t* set, bool is_timed, Frame frame, Wait wait,
                                                   GotSignal got_signal) {
  Slot* const slot = own_slot();
  if (slot == nullptr) return wait();
  TimerWait timer{0, 0};
  if (FORKSIGHT_UNLIKELY(g_lost_timers != 0) && !is_timed) timer = enter_timer_wait(set, false, frame.site());
  const int result =
      note_wait(slot, trace::WaitKind::kSignals, reinterpret_cast<std::uint64_t>(set), frame, nullptr, wait);
  end_timer_wait(timer.touch, timer.signals, got_signal(result));
  return result;
}

bool is_signal_number(int result) { return result > 0; }

}  // namespace

FORKSIGHT_EXPORT(int, sigwait, const sigset_t* set, int* number) {
  return wait_for(
      set, false, FORKSIGHT_FRAME(), [=] { return FORKSIGHT_NEXT(sigwait)(set, number); },
      [](int result) { return result == 0; });
}

FORKSIGHT_EXPORT(int, sigwaitinfo, const sigset_t* set, siginfo_t* info) {
  return wait_for(
      set, false, FORKSIGHT_FRAME(), [=] { return FORKSIGHT_NEXT(sigwaitinfo)(set, info); }, is_signal_number);
}

FORKSIGHT_EXPORT(int, sigtimedwait, const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  return wait_for(
      set, timeout != nullptr, FORKSIGHT_FRAME(), [=] { return FORKSIGHT_NEXT(sigtimedwait)(set, info, timeout); },
      is_signal_number);
}

// sigsuspend() and pause() return only after a handler of an awaited signal has run, so `got_signal` is true.
// sigsuspend() also returns if the mask cannot be read, but then no wait is recorded.
FORKSIGHT_EXPORT(int, sigsuspend, const sigset_t* mask) {
  const auto real = FORKSIGHT_LAZY_NEXT(sigsuspend);
  if (FORKSIGHT_LIKELY(g_lost_timers == 0)) return real(mask);
  const TimerWait timer = enter_timer_wait(mask, true, FORKSIGHT_FRAME().site());
  const int result = real(mask);
  end_timer_wait(timer.touch, timer.signals, true);
  return result;
}

FORKSIGHT_EXPORT(int, pause, ) {
  const auto real = FORKSIGHT_LAZY_NEXT(pause);
  if (FORKSIGHT_LIKELY(g_lost_timers == 0)) return real();
  sigset_t mask{};  // stays empty if a seccomp filter refuses the call
  sys::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, sys::word(&mask), sizeof(std::uint64_t));
  const TimerWait timer = enter_timer_wait(&mask, true, FORKSIGHT_FRAME().site());
  const int result = real();
  end_timer_wait(timer.touch, timer.signals, true);
  return result;
}
