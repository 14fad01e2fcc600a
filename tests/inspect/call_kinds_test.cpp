#include "inspect/call_kinds.hpp"

#include <gtest/gtest.h>

#include "forksight/trace/libc_calls.hpp"
#include "inspect/libc_locks.hpp"

namespace forksight::inspect {
namespace {

TEST(CallKinds, NamesAreThoseThatProgramsCall) {
  EXPECT_EQ(public_name("pthread_mutex_lock"), "pthread_mutex_lock");
  EXPECT_EQ(public_name("___pthread_mutex_lock"), "pthread_mutex_lock");
  EXPECT_EQ(public_name("__GI___pthread_mutex_lock"), "pthread_mutex_lock");
  EXPECT_EQ(public_name("pthread_cond_wait@@GLIBC_2.3.2"), "pthread_cond_wait");
  EXPECT_EQ(public_name("__GI_"), "");
  EXPECT_EQ(public_name("____"), "");
  EXPECT_EQ(public_name(""), "");
}

TEST(CallKinds, EachIsKnownByItsPublicName) {
  const std::pair<const char*, CallKind> kinds[] = {
      {"pthread_mutex_lock", CallKind::kMutex},
      {"pthread_mutex_clocklock", CallKind::kMutex},
      {"mtx_lock", CallKind::kMutex},
      {"pthread_rwlock_rdlock", CallKind::kRwlockRead},
      {"pthread_rwlock_clockwrlock", CallKind::kRwlockWrite},
      {"pthread_spin_lock", CallKind::kSpinlock},
      {"sem_timedwait", CallKind::kSemaphore},
      {"pthread_cond_wait", CallKind::kConditionWait},
      {"pthread_cond_signal", CallKind::kConditionSignal},
      {"pthread_cond_broadcast", CallKind::kConditionBroadcast},
      {"pthread_cond_destroy", CallKind::kConditionDestroy},
      {"pthread_barrier_wait", CallKind::kBarrierWait},
      {"pthread_barrier_destroy", CallKind::kBarrierDestroy},
      {"cxa_guard_acquire", CallKind::kGuard},
      {"pthread_join", CallKind::kJoin},
      {"pthread_mutex_unlock", CallKind::kUnknown},
      {"pthread_mutex_trylock", CallKind::kUnknown},
      {"read", CallKind::kUnknown},
      {"", CallKind::kUnknown},
  };
  for (const auto& [name, kind] : kinds) EXPECT_EQ(kind_of_function(name), kind) << name;
}

TEST(CallKinds, LibrariesAreKnownByTheirFilesNames) {
  for (const char* path : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/libc-2.31.so", "/lib/libpthread-2.31.so",
                           "/lib64/ld-linux-x86-64.so.2", "[vdso]", "libc.so.6"}) {
    EXPECT_TRUE(is_libc(path)) << path;
  }
  for (const char* path : {"/usr/lib/libcrypto.so.3", "/usr/lib/libcuda.so.1", "/libc.so.6/app", "", "/usr/bin/ld"}) {
    EXPECT_FALSE(is_libc(path)) << path;
  }
  EXPECT_TRUE(is_libgomp("/site-packages/torch/lib/libgomp-a34b3233.so.1"));
  EXPECT_TRUE(is_libgomp("libgomp.so.1"));
  EXPECT_FALSE(is_libgomp("/opt/libgomp/app"));
}

TEST(CallKinds, FunctionsHaveTheLocksOfTheShimsList) {
  EXPECT_EQ(libc_locks_of("localtime_r"), trace::bit_of(trace::LibcLock::kTimeZone));
  EXPECT_EQ(libc_locks_of("localtime_r2"), 0U);
  EXPECT_EQ(libc_locks_of("malloc"), 0U);
  EXPECT_EQ(libc_locks_of(""), 0U);
}

}  // namespace
}  // namespace forksight::inspect
