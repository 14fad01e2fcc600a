// What a thread is inside of, by the names of libc's and the runtimes' functions on its stack.
#pragma once

#include <string_view>

namespace forksight::inspect {

enum class CallKind {
  kUnknown,
  kMutex,
  kRwlockRead,
  kRwlockWrite,
  kSpinlock,
  kSemaphore,
  kConditionWait,
  kConditionSignal,
  kConditionBroadcast,
  kConditionDestroy,
  kBarrierWait,
  kBarrierDestroy,
  kGuard,  // __cxa_guard_acquire
  kJoin,
  kFutex,       // syscall(), or a futex of the program's own
  kLibcCall,    // a lock inside of libc, of a function that fork() does not reset
  kParallel,    // an OpenMP runtime
  kPythonLock,  // a lock of CPython 3.13 or later
};

// The name without what glibc's own debug information puts before it: "__GI___pthread_mutex_lock" is
// "pthread_mutex_lock".
std::string_view public_name(std::string_view function);

// kUnknown for what says nothing by itself.
CallKind kind_of_function(std::string_view public_name);

// A function of libgomp's that waits for a lock of the program's: a critical section, omp_set_lock() and the like.
bool is_lock_of_openmp(std::string_view function);

// libc, the loader, libpthread: what is called from there is no code of the user's.
bool is_libc(std::string_view module);
// libgomp under whatever name.
bool is_libgomp(std::string_view module);

}  // namespace forksight::inspect
