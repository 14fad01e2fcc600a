#include "inspect/call_kinds.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/base_name.hpp"
#include "symbols/names.hpp"

namespace forksight::inspect {
namespace {

// Exported functions, and internal functions of glibc 2.36 with the same meaning. The names of internal functions are
// only in debug information.
constexpr std::array kCalls = std::to_array<std::pair<std::string_view, CallKind>>({
    {"pthread_mutex_lock", CallKind::kMutex},
    {"pthread_mutex_lock_full", CallKind::kMutex},
    {"pthread_mutex_timedlock", CallKind::kMutex},
    {"pthread_mutex_clocklock", CallKind::kMutex},
    {"pthread_mutex_cond_lock", CallKind::kMutex},
    {"mtx_lock", CallKind::kMutex},
    {"mtx_timedlock", CallKind::kMutex},
    {"pthread_rwlock_rdlock", CallKind::kRwlockRead},
    {"pthread_rwlock_timedrdlock", CallKind::kRwlockRead},
    {"pthread_rwlock_clockrdlock", CallKind::kRwlockRead},
    {"pthread_rwlock_wrlock", CallKind::kRwlockWrite},
    {"pthread_rwlock_timedwrlock", CallKind::kRwlockWrite},
    {"pthread_rwlock_clockwrlock", CallKind::kRwlockWrite},
    {"pthread_spin_lock", CallKind::kSpinlock},
    {"sem_wait", CallKind::kSemaphore},
    {"new_sem_wait", CallKind::kSemaphore},
    {"new_sem_wait_slow64", CallKind::kSemaphore},
    {"sem_timedwait", CallKind::kSemaphore},
    {"sem_clockwait", CallKind::kSemaphore},
    {"pthread_cond_wait", CallKind::kConditionWait},
    {"pthread_cond_timedwait", CallKind::kConditionWait},
    {"pthread_cond_clockwait", CallKind::kConditionWait},
    {"cnd_wait", CallKind::kConditionWait},
    {"cnd_timedwait", CallKind::kConditionWait},
    {"pthread_cond_signal", CallKind::kConditionSignal},
    {"cnd_signal", CallKind::kConditionSignal},
    {"pthread_cond_broadcast", CallKind::kConditionBroadcast},
    {"cnd_broadcast", CallKind::kConditionBroadcast},
    {"pthread_cond_destroy", CallKind::kConditionDestroy},
    {"cnd_destroy", CallKind::kConditionDestroy},
    {"pthread_barrier_wait", CallKind::kBarrierWait},
    {"pthread_barrier_destroy", CallKind::kBarrierDestroy},
    {"cxa_guard_acquire", CallKind::kGuard},
    {"pthread_join", CallKind::kJoin},
    {"pthread_clockjoin_ex", CallKind::kJoin},
    {"pthread_timedjoin_np", CallKind::kJoin},
    {"pthread_clockjoin_np", CallKind::kJoin},
    {"thrd_join", CallKind::kJoin},
});

// Entry points of libgomp (GCC 12) in which a thread waits for a lock of the program, or for its turn in an `ordered`
// region. A thread in one of these functions does not wait for a team.
constexpr std::array<std::string_view, 8> kOpenmpLocks = {
    "GOMP_atomic_start", "GOMP_critical_name_start", "GOMP_critical_start", "omp_set_lock",
    "omp_set_lock_",     "omp_set_nest_lock",        "omp_set_nest_lock_",  "GOMP_ordered_start"};

}  // namespace

std::string_view public_name(std::string_view function) {
  const auto drop_underscores = [&] {
    const std::size_t first = function.find_first_not_of('_');
    function.remove_prefix(first == std::string_view::npos ? function.size() : first);
  };
  drop_underscores();
  if (function.starts_with("GI_")) {
    function.remove_prefix(3);
    drop_underscores();
  }
  // Removes the symbol version, as in "pthread_cond_wait@@GLIBC_2.3.2".
  return function.substr(0, function.find('@'));
}

CallKind kind_of_function(std::string_view public_name) {
  for (const auto& [name, kind] : kCalls) {
    if (name == public_name) return kind;
  }
  return CallKind::kUnknown;
}

bool is_lock_of_openmp(std::string_view function) {
  return std::ranges::find(kOpenmpLocks, function.substr(0, function.find('@'))) != kOpenmpLocks.end();
}

bool is_libc(std::string_view module) {
  const std::string_view name = model::base_name(module);
  return symbols::is_c_library(module) || name.starts_with("[vdso]") || name.starts_with("linux-vdso");
}

bool is_libgomp(std::string_view module) { return model::base_name(module).starts_with("libgomp"); }

}  // namespace forksight::inspect
