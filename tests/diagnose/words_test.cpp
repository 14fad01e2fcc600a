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

TEST(Words, TheUserFrameSkipsFramesOfRuntimes) {
  const model::Stack stack =
      test::make_stack({"futex_wait libc.so.6", "?? libgomp-a34b3233.so.1.0.0", "std::mutex::lock mutex:10",
                        "work app.c:31", "main app.c:40", "__libc_start_main libc.so.6"});
  ASSERT_NE(find_user_frame(stack), nullptr);
  EXPECT_EQ(find_user_frame(stack)->function, "work");
  EXPECT_EQ(find_user_part(stack), (std::pair<std::size_t, std::size_t>{3, 5}));
  EXPECT_EQ(place(stack), "app.c:31");
  EXPECT_EQ(place_with_function(stack), "app.c:31 (work)");
}

TEST(Words, FramesOfRustsStandardLibraryAreNotUserFrames) {
  model::Stack stack = test::make_stack({"futex_wait futex.rs:73", "fn::main fn.rs:5"});
  stack.frames[0].file = "/rustc/59807616e1fa/library/std/src/sys/pal/unix/futex.rs";
  EXPECT_EQ(place(stack), "fn.rs:5");
}

TEST(Words, AGuardIsNamedAfterItsStaticVariable) {
  EXPECT_EQ(static_variable("guard variable for shop::prices::table"), "static table of shop::prices");
  EXPECT_EQ(static_variable("guard variable for get<a::b>(int)::instance"), "static instance of get<a::b>(int)");
  EXPECT_EQ(static_variable("guard variable for table"), "static table");
  EXPECT_EQ(static_variable("libfoo.so+0x4010"), "the static behind libfoo.so+0x4010");
  model::Lock guard;
  guard.kind = model::LockKind::kGuard;
  guard.address = 0x10;
  EXPECT_EQ(lock(guard), "the initialisation guard at 0x10");
}

TEST(Words, ACustomLockIsPlacedWhereItIsUsed) {
  const auto stack = test::make_stack({"SpinLock::lock spin.hpp:12", "std::lock_guard<SpinLock>::lock_guard mutex:10",
                                       "push queue.cpp:31", "main app.c:40"});
  EXPECT_EQ(place(without_lock_functions(stack)), "queue.cpp:31");
  const auto only = test::make_stack({"fl_acquire lock.c:12", "clone3 libc.so.6"});
  EXPECT_EQ(place(without_lock_functions(only)), "lock.c:12");
  EXPECT_FALSE(without_lock_functions({}).known());
}

// The line of the script leads to the cause, so it comes first. The place in an extension module of a library follows
// this line. A place in the user's own extension module is given alone.
TEST(Words, ThePlaceInAnExtensionModuleFollowsTheLineOfPython) {
  model::Stack stack = test::make_stack({"gomp_team_end libgomp.so.1", "at::add libtorch.so", "?? libtorch.so",
                                         "_PyEval_EvalFrame python3.11", "train train.py:7", "main train.py:31"});
  for (std::size_t i : {4U, 5U}) stack.frames[i].python = true;
  EXPECT_EQ(find_user_line(stack), 4U);
  EXPECT_EQ(place(stack), "train.py:7, at::add in libtorch.so");
  EXPECT_EQ(place_with_function(stack), place(stack));
  stack.frames[1].file = "add.cpp";
  stack.frames[1].line = 12;
  EXPECT_EQ(place(stack), "train.py:7, add.cpp:12");
  stack.frames[1].module = "/srv/user/add.so";
  EXPECT_EQ(find_user_line(stack), 1U);
  EXPECT_EQ(place(stack), "add.cpp:12");
  stack.frames.erase(stack.frames.begin() + 1, stack.frames.begin() + 4);
  EXPECT_EQ(find_user_line(stack), 1U);
  EXPECT_EQ(place_with_function(stack), "train.py:7 (train)");
}

TEST(Words, ThePlaceInAModuleOfPythonItselfDoesNotFollowTheLineOfPython) {
  model::Stack stack = test::make_stack(
      {"select_poll /usr/lib/python3.11/lib-dynload/select.cpython-311-x86_64-linux-gnu.so", "main jobs.py:12"});
  stack.frames[1].python = true;
  EXPECT_EQ(place(stack), "jobs.py:12");
  stack.frames.pop_back();
  EXPECT_EQ(place(stack), "select_poll in select.cpython-311-x86_64-linux-gnu.so");
}

model::Frame python_frame(const char* function, const char* file) {
  model::Frame frame;
  frame.function = function;
  frame.file = file;
  frame.line = 20;
  frame.python = true;
  return frame;
}

TEST(Words, ThePlaceInAPythonPackageFollowsTheLineOfTheProgram) {
  model::Stack stack;
  stack.frames = {
      python_frame("_try_get_data", "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"),
      python_frame("main", "/srv/user/dl2.py")};
  EXPECT_EQ(place(stack), "dl2.py:20, dataloader.py:20");
  stack.frames.pop_back();
  EXPECT_EQ(place(stack), "dataloader.py:20");
}

model::Frame frame_of(const char* function, const char* module) {
  model::Frame frame;
  frame.function = function;
  frame.module = module;
  return frame;
}

TEST(Words, AFrameBelongsToTheProgramALibraryOrARuntime) {
  EXPECT_EQ(whose(frame_of("work", "/srv/user/app")), Whose::kUser);
  EXPECT_EQ(whose(frame_of("work", "/srv/user/libwork.so")), Whose::kUser);
  EXPECT_EQ(whose(frame_of("main", "/usr/bin/app")), Whose::kUser);
  EXPECT_EQ(whose(frame_of("event_loop", "/usr/lib/x86_64-linux-gnu/libevent.so.2")), Whose::kLibrary);
  EXPECT_EQ(whose(frame_of("dgemm_", "/srv/user/libopenblas.so.0")), Whose::kLibrary);
  EXPECT_EQ(whose(frame_of("add", "/opt/venv/lib/python3.11/site-packages/numpy/core/_multiarray.so")),
            Whose::kLibrary);
  EXPECT_EQ(whose(python_frame("run", "/opt/venv/lib/python3.11/site-packages/celery/app.py")), Whose::kLibrary);
  EXPECT_EQ(whose(python_frame("run", "/srv/user/app.py")), Whose::kUser);
  EXPECT_EQ(whose(python_frame("run", "/usr/lib/python3.11/threading.py")), Whose::kRuntime);
  EXPECT_EQ(whose(frame_of("read", "/usr/lib/x86_64-linux-gnu/libc.so.6")), Whose::kRuntime);
  EXPECT_EQ(whose(frame_of("PyEval_EvalCode", "/usr/bin/python3.11")), Whose::kRuntime);
  EXPECT_EQ(whose({}), Whose::kRuntime);
}

TEST(Words, TheCodeOfAFrameHasAName) {
  EXPECT_EQ(code_of(frame_of("read", "/usr/lib/x86_64-linux-gnu/libc.so.6")), "libc.so.6");
  EXPECT_EQ(code_of(frame_of("std::mutex::lock", "/srv/user/app")), "the C++ library");
  EXPECT_EQ(code_of(frame_of("std::terminate", "/usr/lib/libstdc++.so.6")), "libstdc++.so.6");
  EXPECT_EQ(code_of(frame_of("gomp_team_start", "/srv/user/app")), "libgomp");
  EXPECT_EQ(code_of(python_frame("run", "/usr/lib/python3.11/threading.py")), "threading");
  EXPECT_EQ(code_of(python_frame("get", "/usr/lib/python3.11/multiprocessing/pool.py")), "multiprocessing");
  EXPECT_EQ(code_of(python_frame("get", "/opt/venv/lib/python3.11/site-packages/torch/nn/a.py")), "torch");
  EXPECT_EQ(code_of(python_frame("get", "/usr/lib/python3/dist-packages/six.py")), "six");
  EXPECT_EQ(code_of(python_frame("get", "<frozen importlib._bootstrap>")), "importlib");
  EXPECT_EQ(code_of(python_frame("main", "/srv/user/app.py")), "app.py");
  EXPECT_EQ(code_of(python_frame("main", "")), "Python");
  EXPECT_EQ(code_of({}), "unknown code");
}

TEST(Words, PlacesAreGivenAsFarAsTheyAreKnown) {
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
