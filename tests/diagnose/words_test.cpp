#include "diagnose/words.hpp"

#include <gtest/gtest.h>

#include "support/scenes.hpp"

namespace forksight::words {
namespace {

TEST(Words, Durations) {
  EXPECT_EQ(duration(0), "0 ms");
  EXPECT_EQ(duration(999), "999 ms");
  EXPECT_EQ(duration(1400), "1.4 s");
  EXPECT_EQ(duration(59'999), "59.9 s");
  EXPECT_EQ(duration(200'000), "3 min 20 s");
  EXPECT_EQ(duration(7'500'000), "2 h 5 min");
}

TEST(Words, TheUserFrameIsNotOfARuntime) {
  const model::Stack stack =
      test::make_stack({"futex_wait libc.so.6", "?? libgomp-a34b3233.so.1.0.0", "std::mutex::lock mutex:10",
                        "work app.c:31", "main app.c:40", "__libc_start_main libc.so.6"});
  ASSERT_NE(find_user_frame(stack), nullptr);
  EXPECT_EQ(find_user_frame(stack)->function, "work");
  EXPECT_EQ(find_user_part(stack), (std::pair<std::size_t, std::size_t>{3, 5}));
  EXPECT_EQ(place(stack), "app.c:31");
  EXPECT_EQ(long_place(stack), "app.c:31 (work)");
}

TEST(Words, RustsStandardLibraryIsNoUsers) {
  model::Stack stack = test::make_stack({"futex_wait futex.rs:73", "fn::main fn.rs:5"});
  stack.frames[0].file = "/rustc/59807616e1fa/library/std/src/sys/pal/unix/futex.rs";
  EXPECT_EQ(place(stack), "fn.rs:5");
}

TEST(Words, AGuardIsCalledByWhatItGuards) {
  EXPECT_EQ(static_variable("guard variable for shop::prices::table"), "static table of shop::prices");
  EXPECT_EQ(static_variable("guard variable for get<a::b>(int)::instance"), "static instance of get<a::b>(int)");
  EXPECT_EQ(static_variable("guard variable for table"), "static table");
  EXPECT_EQ(static_variable("libfoo.so+0x4010"), "the static behind libfoo.so+0x4010");
  model::Lock guard;
  guard.kind = model::LockKind::kGuard;
  guard.address = 0x10;
  EXPECT_EQ(lock(guard), "the initialisation guard at 0x10");
}

TEST(Words, ALockOfOnesOwnIsToldByItsUse) {
  const auto stack = test::make_stack({"SpinLock::lock spin.hpp:12", "std::lock_guard<SpinLock>::lock_guard mutex:10",
                                       "push queue.cpp:31", "main app.c:40"});
  EXPECT_EQ(place(without_lock_functions(stack)), "queue.cpp:31");
  const auto only = test::make_stack({"fl_acquire lock.c:12", "clone3 libc.so.6"});
  EXPECT_EQ(place(without_lock_functions(only)), "lock.c:12");
  EXPECT_FALSE(without_lock_functions({}).known());
}

// The line of the script leads to the cause; where in an extension module without lines that was comes behind it.
TEST(Words, AnExtensionModuleIsCalledFromALineOfPython) {
  model::Stack stack = test::make_stack({"gomp_team_end libgomp.so.1", "at::add libtorch.so", "?? libtorch.so",
                                         "_PyEval_EvalFrame python3.11", "train train.py:7", "main train.py:31"});
  for (std::size_t i : {4U, 5U}) stack.frames[i].python = true;
  EXPECT_EQ(count_unlined(stack), 3U);
  EXPECT_EQ(place(stack), "train.py:7, at::add in libtorch.so");
  EXPECT_EQ(long_place(stack), place(stack));
  stack.frames[1].file = "add.cpp";
  stack.frames[1].line = 12;
  EXPECT_EQ(count_unlined(stack), 0U);
  EXPECT_EQ(place(stack), "add.cpp:12");
  stack.frames.erase(stack.frames.begin() + 1, stack.frames.begin() + 4);
  EXPECT_EQ(count_unlined(stack), 0U);
  EXPECT_EQ(long_place(stack), "train.py:7 (train)");
}

TEST(Words, PlacesGetByWithWhatIsKnown) {
  EXPECT_EQ(place({}), "");
  EXPECT_EQ(at(" at ", {}), "");
  EXPECT_EQ(place(test::make_stack({"dgemm_ libopenblas.so.0"})), "dgemm_ in libopenblas.so.0");
  model::Stack bare;
  bare.frames.emplace_back();
  bare.frames[0].module = "/usr/lib/libfoo.so";
  bare.frames[0].offset = 0x12f0;
  EXPECT_EQ(place(bare), "libfoo.so+0x12f0");
  EXPECT_EQ(place(test::make_stack({"futex_wait libc.so.6"})), "");
}

TEST(Words, Locks) {
  model::Lock lock;
  lock.address = 0x55d0c0;
  EXPECT_EQ(words::lock(lock), "the mutex at 0x55d0c0");
  lock.type = model::MutexType::kRecursive;
  lock.robust = true;
  EXPECT_EQ(lock_kind(lock), "robust recursive mutex");
  lock.name = "cache_mu";
  EXPECT_EQ(words::lock(lock), "cache_mu");
}

}  // namespace
}  // namespace forksight::words
