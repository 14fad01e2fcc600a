// Tests that the functions on the stack of a futex wait show what the thread waits for.
#include "diagnose/futex_waits.hpp"

#include <gtest/gtest.h>

#include "support/scenes.hpp"

namespace forksight::futex_waits {
namespace {

std::string what(std::initializer_list<const char*> frames) { return find_purpose(test::make_stack(frames)).what; }

TEST(FutexWaits, TheOutermostLibraryFunctionNamesTheWait) {
  // A program that GCC 12 built with debug information has these frames. The user called the outermost library
  // function.
  EXPECT_EQ(what({"std::__atomic_futex_unsigned_base::_M_futex_wait_until libstdc++.so.6",
                  "std::__future_base::_State_baseV2::wait future:350", "std::shared_future<int>::get future:900",
                  "consume app.cpp:31"}),
            "std::shared_future::get()");
  EXPECT_EQ(what({"std::__detail::__platform_wait<int> atomic_wait.h:100", "std::__atomic_base<long>::wait base.h:1",
                  "std::latch::wait latch:60", "main app.cpp:31"}),
            "std::latch::wait()");
  EXPECT_EQ(what({"std::__detail::__platform_wait<int> atomic_wait.h:100", "std::atomic<int>::wait atomic:1",
                  "main app.cpp:31"}),
            "std::atomic::wait()");
}

TEST(FutexWaits, AStrippedLibraryGivesAMoreGeneralName) {
  EXPECT_EQ(what({"std::__atomic_futex_unsigned_base::_M_futex_wait_until libstdc++.so.6", "main app.cpp:31"}),
            "a std::future");
  EXPECT_EQ(what({"__cxa_guard_acquire libstdc++.so.6", "main app.cpp:31"}), "the initialisation of a static variable");
}

TEST(FutexWaits, NamesWaitsOfRustAndAbseil) {
  EXPECT_EQ(what({"std::sys::sync::mutex::futex::Mutex::lock_contended futex.rs:110", "app::work work.rs:4"}),
            "a Rust std::sync::Mutex");
  for (const char* const park : {"std::thread::park mod.rs:929", "std::thread::functions::park functions.rs:529"}) {
    EXPECT_EQ(what({"std::sys::futex::futex_wait futex.rs:73", park, "app::work work.rs:4"}), "Rust's thread::park()");
  }
  EXPECT_EQ(what({"absl::synchronization_internal::FutexImpl::WaitUntil futex.h:3", "main app.cpp:31"}),
            "an abseil Mutex or CondVar");
}

TEST(FutexWaits, NamesWaitsOfLibcAndLibgomp) {
  EXPECT_EQ(what({"__new_sem_wait_slow64 libc.so.6", "main app.c:31"}), "sem_wait()");
  EXPECT_EQ(what({"pthread_cond_wait@@GLIBC_2.3.2 libc.so.6", "main app.c:31"}), "pthread_cond_wait()");
  EXPECT_EQ(what({"pthread_cond_wait@@GLIBC_2.3.2 libc.so.6", "std::condition_variable::wait libstdc++.so.6",
                  "main app.cpp:31"}),
            "std::condition_variable::wait()");
  EXPECT_EQ(what({"omp_get_num_procs libgomp.so.1", "GOMP_critical_name_start libgomp.so.1", "add app.c:5",
                  "main._omp_fn.0 app.c:11", "GOMP_parallel libgomp.so.1", "main app.c:7"}),
            "#pragma omp critical");
  EXPECT_EQ(what({"omp_get_num_procs libgomp.so.1", "GOMP_parallel libgomp.so.1", "main app.c:7"}),
            "the end of a parallel region");
}

TEST(FutexWaits, TheTypesOfParametersDoNotNameTheWait) {
  EXPECT_EQ(what({"syscall libc.so.6", "poll(std::atomic<int>&) app.cpp:12"}), "a futex");
  EXPECT_EQ(find_purpose({}).what, "a futex");
}

}  // namespace
}  // namespace forksight::futex_waits
