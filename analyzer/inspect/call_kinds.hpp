// Tells what kind of call a thread is in, by the names of the functions of libc and of runtimes on its stack.
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
  kFutex,       // syscall(), or a futex of the program itself
  kLibcCall,    // a function that waits for an inner lock of libc that fork() does not reset
  kParallel,    // an OpenMP runtime
  kPythonLock,  // a lock of CPython 3.13 or later
};

// Returns the name without leading underscores, without the "GI_" of glibc's debug information, and without a symbol
// version: "pthread_mutex_lock" for "__GI___pthread_mutex_lock".
std::string_view public_name(std::string_view function);

// Returns kUnknown for a function whose name alone does not show the kind of call.
CallKind kind_of_function(std::string_view public_name);

// True for a function of libgomp that waits for a lock of the program: a critical section, omp_set_lock() and the like.
bool is_lock_of_openmp(std::string_view function);

// True for libc, the loader, libpthread and the vDSO: their frames are not code of the program.
bool is_libc(std::string_view module);
// True for libgomp under any file name.
bool is_libgomp(std::string_view module);

}  // namespace forksight::inspect
