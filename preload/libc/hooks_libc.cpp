// The hooks of libc functions with locks that a forked child may inherit in their locked state. Each hook marks the
// call before it calls the real function, and removes the mark afterwards. In a process that never had a second thread,
// a hook costs a load and a branch.
#include <stdarg.h>
#include <stddef.h>
#include <unwind.h>

#include "guest/site.hpp"
#include "libc/call_marks.hpp"
#include "libc/libc_calls.hpp"
#include "libc/random_numbers.hpp"
#include "record/slots.hpp"

using namespace forksight;

// Removes the mark of a hook whose frame is unwound. The unwinder calls this function for each frame of a hook that an
// exception or a cancellation passes through: a callback of dl_iterate_phdr may throw, and libc's functions contain
// cancellation points. There is no landing pad, so the unwinding continues. No C++ runtime is needed, because the
// unwind information of the hook names this routine directly (FORKSIGHT_UNWOUND).
extern "C" [[gnu::visibility("hidden"), gnu::used]] _Unwind_Reason_Code forksight_unwind_call(
    int /*version*/, _Unwind_Action actions, _Unwind_Exception_Class /*of*/, _Unwind_Exception* /*exception*/,
    _Unwind_Context* /*context*/) {
  Slot* const slot = t_slot;
  // If the hook of this frame made no mark, the hook was called before the process had a second thread. Then the
  // calling thread has no marks at all.
  if ((actions & _UA_CLEANUP_PHASE) != 0 && slot != nullptr && slot->call_depth > 0) {
    drop_calls(*slot, slot->call_depth - 1);
  }
  return _URC_CONTINUE_UNWIND;
}

// 0x1b: relative to the position of the reference, four bytes (DW_EH_PE_pcrel | DW_EH_PE_sdata4).
#define FORKSIGHT_UNWOUND() asm volatile(".cfi_personality 0x1b, forksight_unwind_call")

namespace {

// True from the process's second thread on, or from its first use of CUDA, MPI or UCX on.
inline bool calls_are_marked() { return g_had_threads.load(std::memory_order_relaxed); }

template <class Call>
__attribute__((always_inline)) inline auto guard_call(LibcCall call, Frame frame, Call real) {
  const CallMark mark = enter_call(call, frame);
  if constexpr (__is_same(decltype(real()), void)) {
    real();
    leave_call(mark);
  } else {
    const auto result = real();
    leave_call(mark);
    return result;
  }
}

}  // namespace

// Calls `real`. For random() and rand(), also notes the result. For a function that seeds their generator, first notes
// that the generator is seeded.
template <LibcCall call, class Real>
__attribute__((always_inline)) inline auto note_random(Frame frame, Real real) {
  constexpr bool is_seed =
      call == LibcCall::srand || call == LibcCall::srandom || call == LibcCall::initstate || call == LibcCall::setstate;
  if constexpr (is_seed) note_seed(trace::Generator::kRandom);
  if constexpr (call == LibcCall::rand || call == LibcCall::random) {
    const auto value = real(frame);
    note_random_number(trace::Generator::kRandom, static_cast<std::uint64_t>(value), frame);
    return value;
  } else {
    return real(frame);
  }
}

#define FORKSIGHT_LIBC_HOOK(name, probe, versions, locks, takes, result, parameters, arguments) \
  asm(FORKSIGHT_SYMVER_##name);                                                                 \
  extern "C" [[gnu::visibility("default")]] result forksight_hook_##name parameters asm(#name); \
  result forksight_hook_##name parameters {                                                     \
    FORKSIGHT_UNWOUND();                                                                        \
    const auto real = reinterpret_cast<result(*) parameters>(real_call(LibcCall::name));        \
    return note_random<LibcCall::name>(FORKSIGHT_FRAME(), [=](Frame frame) -> result {          \
      if (FORKSIGHT_LIKELY(!calls_are_marked())) return real arguments;                         \
      return guard_call(LibcCall::name, frame, [=]() -> result { return real arguments; });     \
    });                                                                                         \
  }
#include "forksight/trace/libc_calls.def"

// syslog is variadic: the hook makes a va_list and calls libc's vsyslog.
FORKSIGHT_EXPORT_VERSIONED(void, syslog, int priority, const char* format, ...) {
  FORKSIGHT_UNWOUND();
  const auto real = reinterpret_cast<void (*)(int, const char*, va_list)>(real_call(LibcCall::vsyslog));
  va_list arguments;
  va_start(arguments, format);
  if (calls_are_marked()) {
    guard_call(LibcCall::syslog, FORKSIGHT_FRAME(), [&] { real(priority, format, arguments); });
  } else {
    real(priority, format, arguments);
  }
  va_end(arguments);
}

FORKSIGHT_EXPORT_VERSIONED(void, __syslog_chk, int priority, int flag, const char* format, ...) {
  FORKSIGHT_UNWOUND();
  const auto real = reinterpret_cast<void (*)(int, int, const char*, va_list)>(real_call(LibcCall::__vsyslog_chk));
  va_list arguments;
  va_start(arguments, format);
  if (calls_are_marked()) {
    guard_call(LibcCall::__syslog_chk, FORKSIGHT_FRAME(), [&] { real(priority, flag, format, arguments); });
  } else {
    real(priority, flag, format, arguments);
  }
  va_end(arguments);
}

#include "guest/house_rules.hpp"
