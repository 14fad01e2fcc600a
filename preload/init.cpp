// Starts the shim once: in its constructor or in the first hook that is called, whichever comes first. Constructors of
// other libraries run before that of the shim, and may already take locks, make threads, or register handlers.
#include <unistd.h>

#include <atomic>

#include "bindings.hpp"
#include "foresight/foresight.hpp"
#include "fork/hooks_fork.hpp"
#include "fork/hooks_syscall.hpp"
#include "guest/config.hpp"
#include "guest/confinement.hpp"
#include "guest/kept_errno.hpp"
#include "libc/libc_calls.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"
#include "locks/lost_waiters.hpp"
#include "record/own_ids.hpp"
#include "record/slots.hpp"

#include "guest/house_rules.hpp"

extern "C" void* __libc_stack_end;  // the address where the loader found the argument count

namespace forksight {

namespace {

enum class Stage : int { kCold, kStarting, kUp };
constinit std::atomic<Stage> g_stage{Stage::kCold};

// Returns the environment. The start-up code of a sanitizer may call hooks before libc has set `environ`. Then this
// function finds the environment where the kernel put it: behind the arguments.
char** find_environment() {
  if (environ != nullptr) return environ;
  const auto* const arguments = static_cast<const std::uint64_t*>(__libc_stack_end);
  return arguments == nullptr ? nullptr : reinterpret_cast<char**>(__libc_stack_end) + 1 + arguments[0] + 1;
}

// g_lock and g_unlock are libc's own functions. If a sanitizer interposes these functions, its versions may not be
// ready yet.
using MutexFunction = int (*)(pthread_mutex_t*);
constinit MutexFunction g_lock = nullptr;
constinit MutexFunction g_unlock = nullptr;

// The calling thread's id as libc knows it, without a system call: libc writes the id into a mutex that the thread
// takes.
std::int32_t read_own_tid() {
  pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  if (g_lock == nullptr || g_lock(&mutex) != 0) return 0;
  const std::int32_t tid = mutex.__data.__owner;
  g_unlock(&mutex);
  return tid;
}

void start() {
  find_errno();
  look_for_filter();
  const bool is_complete = resolve_next();
  if (g_next.real_syscall != nullptr) set_next_syscall(g_next.real_syscall);
  if (!is_complete || has_earlier_shim()) return;
  g_unlock = reinterpret_cast<MutexFunction>(find_in_libc("pthread_mutex_unlock"));
  g_lock = g_unlock == nullptr ? nullptr : reinterpret_cast<MutexFunction>(find_in_libc("pthread_mutex_lock"));
  g_read_tid = read_own_tid;
  read_config(find_environment());
  start_slots();
  start_own_ids();
  start_modules();
  start_foresight();
  start_quiescing();
  using Register = int (*)(void (*)(), void (*)(), void (*)(), void*);
  reinterpret_cast<Register>(g_next.__register_atfork)(on_prepare, on_parent, on_child, nullptr);
  begin_watching_sync();
}

}  // namespace

void initialise_slow() {
  Stage expected = Stage::kCold;
  // If another thread is starting the shim (a constructor may have made threads), nothing is recorded about this call.
  if (!g_stage.compare_exchange_strong(expected, Stage::kStarting, std::memory_order_acq_rel)) return;
  start();
  g_next.ready = true;
  g_stage.store(Stage::kUp, std::memory_order_release);
}

}  // namespace forksight

__attribute__((constructor)) static void forksight_constructor() {
  forksight::initialise();
  forksight::use_clock_of_libc();
  forksight::watch_startup_calls();
}
