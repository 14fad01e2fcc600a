// Tests how the analyzer recognises the call that a thread is in. Frames and system calls are made up.
#include "inspect/stuck_call.hpp"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "forksight/trace/libc_calls.hpp"

namespace forksight::inspect {
namespace {

constexpr abi::Libc k236{{2, 36}, abi::ConditionKind::kWithReferences};
constexpr abi::Libc k242{{2, 42}, abi::ConditionKind::kWithoutReferences};

StuckCall recognise(const image::Thread& thread, const model::Stack& stack, const CalleeOf& callee_of) {
  return inspect::recognise(thread, stack, callee_of, k236);
}

constexpr char kLibc[] = "/lib/x86_64-linux-gnu/libc.so.6";
constexpr char kLibstdcxx[] = "/usr/lib/libstdc++.so.6";
constexpr char kLibgomp[] = "/site-packages/torch/libgomp-a34b.so.1";
constexpr char kApp[] = "/usr/bin/app";
constexpr std::uint64_t kWord = 0x5555'0000'4040;
constexpr std::uint64_t kPrivateWait = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;

model::Frame frame(const char* function, const char* module = kApp) {
  model::Frame made;
  made.function = function;
  made.module = module;
  return made;
}

// Returns the stack of a program that called these functions of libc, the innermost first.
model::Stack in_libc(std::initializer_list<const char*> functions) {
  model::Stack stack;
  for (const char* function : functions) stack.frames.push_back(frame(function, kLibc));
  stack.frames.push_back(frame("take"));
  stack.frames.push_back(frame("main"));
  return stack;
}

image::Thread in_futex(std::uint64_t word = kWord, std::uint64_t operation = kPrivateWait, std::uint64_t timeout = 0) {
  image::Thread thread;
  thread.state = 'S';
  proc::Syscall call;
  call.in_syscall = true;
  call.number = SYS_futex;
  call.args = {word, operation, 7, timeout, 0, 0};
  thread.call = call;
  return thread;
}

std::string no_callee(const model::Frame& /*caller*/) { return {}; }

CalleeOf calls(const char* name) {
  return [name](const model::Frame& caller) { return caller.function == "take" ? std::string(name) : std::string(); };
}

struct Known {
  const char* function;
  CallKind kind;
  std::uint64_t offset;  // where the futex word is in the object
};

void PrintTo(const Known& known, std::ostream* out) { *out << known.function << " +" << known.offset; }

class KnownCall : public testing::TestWithParam<Known> {};

TEST_P(KnownCall, LeadsFromTheWordToTheObject) {
  const auto& [function, kind, offset] = GetParam();
  const StuckCall call = recognise(in_futex(kWord + offset), in_libc({"futex_wait", function}), no_callee);
  EXPECT_EQ(call.kind, kind);
  EXPECT_EQ(call.object, kWord);
  EXPECT_EQ(call.word, kWord + offset);
  EXPECT_EQ(call.value, 7U);
  EXPECT_TRUE(call.is_private);
  EXPECT_FALSE(call.is_timed);
  EXPECT_FALSE(call.is_in_fork);
  EXPECT_FALSE(call.is_in_exit);
  ASSERT_EQ(call.stack.frames.size(), 2U);
  EXPECT_EQ(call.stack.frames.front().function, "take");
}

TEST(ConditionOfGlibc241, IsFoundByItsOwnLayout) {
  const auto object_of = [](const char* function, std::uint64_t offset, const abi::Libc& libc) {
    return inspect::recognise(in_futex(kWord + offset), in_libc({"futex_wait", function}), no_callee, libc).object;
  };
  EXPECT_EQ(object_of("pthread_cond_wait", 32, k242), kWord);
  EXPECT_EQ(object_of("pthread_cond_timedwait", 36, k242), kWord);
  EXPECT_EQ(object_of("pthread_cond_destroy", 28, k242), kWord);
  EXPECT_EQ(object_of("pthread_cond_signal", 16, k242), 0U) << "pthread_cond_signal() of this libc waits for no group";
}

TEST(ObjectOfAnUnknownLibc, IsNotKnown) {
  for (const char* const function :
       {"pthread_cond_wait", "pthread_cond_destroy", "pthread_rwlock_wrlock", "pthread_barrier_wait"}) {
    const StuckCall call =
        inspect::recognise(in_futex(kWord), in_libc({"futex_wait", function}), no_callee, abi::Libc{});
    EXPECT_EQ(call.object, 0U) << function;
    EXPECT_NE(call.kind, CallKind::kUnknown) << function;
  }
}

// A stripped libc has no names of functions. The call instruction in the program's own frame shows which function of
// libc the program called.
TEST_P(KnownCall, IsKnownByTheCalleeOfAStrippedLibc) {
  const auto& [function, kind, offset] = GetParam();
  const StuckCall call = recognise(in_futex(kWord + offset), in_libc({"", ""}), calls(function));
  EXPECT_EQ(call.kind, kind);
  EXPECT_EQ(call.object, kWord);
}

// A statically linked program has libc's functions in its own file, so the module of their frames is not libc.so.
TEST_P(KnownCall, IsKnownByNameAloneInAStaticProgram) {
  const auto& [function, kind, offset] = GetParam();
  model::Stack stack = in_libc({function});
  for (model::Frame& one : stack.frames) one.module = kApp;
  const StuckCall call = recognise(in_futex(kWord + offset), stack, no_callee);
  EXPECT_EQ(call.kind, kind);
  EXPECT_EQ(call.object, kWord);
  EXPECT_EQ(call.stack.frames.front().function, "take");
}

INSTANTIATE_TEST_SUITE_P(
    All, KnownCall,
    testing::Values(Known{"pthread_mutex_lock", CallKind::kMutex, 0},
                    Known{"pthread_mutex_lock_full", CallKind::kMutex, 0},
                    Known{"__GI___pthread_rwlock_rdlock", CallKind::kRwlockRead, 8},
                    Known{"pthread_rwlock_rdlock", CallKind::kRwlockRead, 12},
                    Known{"pthread_rwlock_wrlock", CallKind::kRwlockWrite, 8},
                    Known{"___pthread_rwlock_wrlock", CallKind::kRwlockWrite, 12},
                    Known{"sem_wait", CallKind::kSemaphore, 0}, Known{"__new_sem_wait_slow64", CallKind::kSemaphore, 0},
                    Known{"pthread_cond_wait", CallKind::kConditionWait, 40},
                    Known{"___pthread_cond_wait", CallKind::kConditionWait, 44},
                    Known{"pthread_cond_signal", CallKind::kConditionSignal, 16},
                    Known{"pthread_cond_signal", CallKind::kConditionSignal, 20},
                    Known{"pthread_cond_broadcast", CallKind::kConditionBroadcast, 16},
                    Known{"pthread_cond_destroy", CallKind::kConditionDestroy, 36},
                    Known{"pthread_barrier_wait", CallKind::kBarrierWait, 4}, Known{"pthread_join", CallKind::kJoin, 0},
                    Known{"__pthread_clockjoin_ex", CallKind::kJoin, 0}),
    [](const auto& test) { return test.param.function + ("_" + std::to_string(test.param.offset)); });

TEST(StuckCall, AGuardIsInLibstdcxx) {
  model::Stack stack = in_libc({"syscall"});
  stack.frames.insert(stack.frames.begin() + 1, frame("__cxa_guard_acquire", kLibstdcxx));
  const StuckCall call = recognise(in_futex(), stack, no_callee);
  EXPECT_EQ(call.kind, CallKind::kGuard);
  EXPECT_EQ(call.object, kWord);
  EXPECT_EQ(call.stack.frames.front().function, "take");
}

TEST(StuckCall, AFutexCallOfTheProgramIsOfKindFutex) {
  const StuckCall call = recognise(in_futex(), in_libc({"syscall"}), no_callee);
  EXPECT_EQ(call.kind, CallKind::kFutex);
  EXPECT_EQ(call.object, kWord);
  EXPECT_EQ(call.stack.frames.front().function, "take");
}

TEST(StuckCall, DeadlinesAreSeen) {
  EXPECT_TRUE(
      recognise(in_futex(kWord, kPrivateWait, 0x7ffe0000), in_libc({"pthread_mutex_timedlock"}), no_callee).is_timed);
  EXPECT_FALSE(recognise(in_futex(), in_libc({"pthread_mutex_timedlock"}), no_callee).is_timed);
}

TEST(StuckCall, EveryWayToWaitInAFutexCounts) {
  const int operations[] = {FUTEX_WAIT, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, FUTEX_LOCK_PI, 13};
  for (const int operation : operations) {
    const StuckCall call =
        recognise(in_futex(kWord, static_cast<std::uint64_t>(operation)), in_libc({"pthread_mutex_lock"}), no_callee);
    EXPECT_EQ(call.object, kWord) << operation;
    EXPECT_FALSE(call.is_private) << operation;
  }
  EXPECT_EQ(recognise(in_futex(kWord, FUTEX_WAKE), in_libc({"pthread_mutex_lock"}), no_callee).object, 0U);
}

TEST(StuckCall, WithoutAFutexThereIsNoObject) {
  image::Thread running;
  running.state = 'R';
  const StuckCall call = recognise(running, in_libc({"pthread_mutex_lock"}), no_callee);
  EXPECT_EQ(call.kind, CallKind::kMutex);
  EXPECT_EQ(call.object, 0U);
  EXPECT_EQ(call.word, 0U);
  image::Thread reading = in_futex();
  reading.call->number = SYS_read;
  EXPECT_EQ(recognise(reading, in_libc({"read"}), no_callee).kind, CallKind::kUnknown);
}

TEST(StuckCall, ASpinlockIsTheArgumentOfItsFunction) {
  image::Thread thread;
  thread.state = 'R';
  symbols::Registers registers{};
  registers[5] = kWord;  // rdi
  thread.registers = registers;
  const StuckCall call = recognise(thread, in_libc({"pthread_spin_lock"}), no_callee);
  EXPECT_EQ(call.kind, CallKind::kSpinlock);
  EXPECT_EQ(call.object, kWord);
  thread.registers = symbols::Registers{};
  EXPECT_EQ(recognise(thread, in_libc({"pthread_spin_lock"}), no_callee).object, 0U);
}

TEST(StuckCall, AnEmptyStackIsAFutexOrNothing) {
  EXPECT_EQ(recognise(in_futex(), {}, no_callee).kind, CallKind::kFutex);
  EXPECT_EQ(recognise({}, {}, no_callee).kind, CallKind::kUnknown);
}

// A function of libc takes a lock of libc. On the stack, this looks like a lock function that the program called.
TEST(LibcCall, IsTheFunctionThatTheProgramCalled) {
  const StuckCall call =
      recognise(in_futex(), in_libc({"__lll_lock_wait_private", "__tz_convert", "localtime_r"}), no_callee);
  EXPECT_EQ(call.kind, CallKind::kLibcCall);
  EXPECT_EQ(call.libc_call.function, "localtime_r");
  EXPECT_EQ(call.libc_call.locks, trace::bit_of(trace::LibcLock::kTimeZone));
  EXPECT_EQ(call.stack.frames.front().function, "take");
}

TEST(LibcCall, IsKnownByItsCallerAfterATailCall) {
  const StuckCall call =
      recognise(in_futex(), in_libc({"__lll_lock_wait_private", "__tz_convert"}), calls("localtime"));
  EXPECT_EQ(call.kind, CallKind::kLibcCall);
  EXPECT_EQ(call.libc_call.function, "localtime");
}

TEST(LibcCall, IsNotALockThatTheProgramCalled) {
  const StuckCall call =
      recognise(in_futex(), in_libc({"futex_wait", "pthread_mutex_lock"}), calls("pthread_mutex_lock"));
  EXPECT_EQ(call.kind, CallKind::kMutex);
  EXPECT_EQ(call.libc_call.locks, 0U);
}

// A thread in a read of a file or of the network does not wait for a lock. A running thread may spin, for example in a
// tree that another thread was changing at the fork.
TEST(LibcCall, IsAWaitForALockOrASpin) {
  image::Thread reads = in_futex();
  reads.call->number = SYS_read;
  const model::Stack stack = in_libc({"read", "__tz_convert", "localtime_r"});
  EXPECT_EQ(recognise(reads, stack, no_callee).kind, CallKind::kUnknown);
  EXPECT_EQ(recognise(reads, stack, no_callee).libc_call.locks, 0U);
  image::Thread spins;
  spins.state = 'R';
  EXPECT_EQ(recognise(spins, in_libc({"gettext"}), no_callee).kind, CallKind::kLibcCall);
}

// If libc calls back a function of the program, the frames of that function are the program's own code.
TEST(LibcCall, EndsWhereTheProgramIsCalledBack) {
  model::Stack stack = in_libc({"pthread_mutex_lock"});
  stack.frames.insert(stack.frames.begin() + 2, frame("dl_iterate_phdr", kLibc));
  const StuckCall call = recognise(in_futex(), stack, no_callee);
  EXPECT_EQ(call.kind, CallKind::kMutex);
  const StuckCall outer = recognise_outer_libc_call(stack, no_callee);
  EXPECT_EQ(outer.libc_call.function, "dl_iterate_phdr");
  ASSERT_EQ(outer.stack.frames.size(), 1U);
  EXPECT_EQ(outer.stack.frames.front().function, "main");
}

TEST(LibcCall, IsTheOutermostFunctionOfLibc) {
  model::Stack stack = in_libc({"read", "localtime_r"});
  stack.frames.insert(stack.frames.end() - 1, frame("dl_iterate_phdr", kLibc));
  const StuckCall call = recognise_outer_libc_call(stack, no_callee);
  EXPECT_EQ(call.libc_call.function, "dl_iterate_phdr");
  EXPECT_EQ(recognise_outer_libc_call(in_libc({"read"}), no_callee).libc_call.locks, 0U);
  EXPECT_EQ(recognise_outer_libc_call({}, no_callee).libc_call.locks, 0U);
}

TEST(Region, IsTheRuntimesWhateverItIsCalled) {
  model::Stack stack;
  stack.frames = {frame("gomp_team_barrier_wait_end", kLibgomp), frame("GOMP_parallel", kLibgomp), frame("sum"),
                  frame("main")};
  const StuckCall call = recognise(in_futex(), stack, no_callee);
  EXPECT_EQ(call.kind, CallKind::kParallel);
  EXPECT_EQ(call.library, kLibgomp);
  EXPECT_EQ(call.stack.frames.front().function, "sum");
}

TEST(Region, ABarrierInItsBodyBelongsToTheCallerOfTheRegion) {
  model::Stack stack;
  stack.frames = {frame("GOMP_barrier", kLibgomp), frame("sum._omp_fn.0"), frame("GOMP_parallel", kLibgomp),
                  frame("sum"), frame("main")};
  const StuckCall call = recognise(in_futex(), stack, no_callee);
  EXPECT_EQ(call.kind, CallKind::kParallel);
  ASSERT_EQ(call.stack.frames.size(), 2U);
  EXPECT_EQ(call.stack.frames.front().function, "sum");
}

// The body of the region waits for a mutex of the program.
TEST(Region, ItsBodyMayWaitForSomethingElse) {
  model::Stack stack;
  stack.frames = {frame("pthread_mutex_lock", kLibc), frame("sum._omp_fn.0"), frame("GOMP_parallel", kLibgomp),
                  frame("sum")};
  const StuckCall call = recognise(in_futex(), stack, no_callee);
  EXPECT_EQ(call.kind, CallKind::kMutex);
  EXPECT_EQ(call.stack.frames.front().function, "sum._omp_fn.0");
}

// Critical sections and OpenMP's locks belong to the program. A thread that waits for one of these does not wait for a
// team.
TEST(Region, IsNotALockOfTheProgramsOwn) {
  for (const char* function : {"GOMP_critical_start", "GOMP_critical_name_start", "omp_set_lock@@OMP_3.0",
                               "omp_set_nest_lock", "GOMP_atomic_start"}) {
    model::Stack stack;
    stack.frames = {frame("gomp_mutex_lock_slow", kLibgomp), frame(function, kLibgomp), frame("sum._omp_fn.0"),
                    frame("GOMP_parallel", kLibgomp), frame("sum")};
    const StuckCall call = recognise(in_futex(), stack, no_callee);
    EXPECT_EQ(call.kind, CallKind::kFutex) << function;
    EXPECT_EQ(call.object, kWord);
    EXPECT_EQ(call.stack.frames.front().function, "sum._omp_fn.0");
    stack.frames = {frame("omp_get_num_procs", kLibgomp), frame("take"), frame("main")};
    EXPECT_EQ(recognise(in_futex(), stack, calls(function)).kind, CallKind::kFutex) << function;
  }
}

TEST(InFork, IsSeenByTheFrameOfForkThatCallsAHandler) {
  for (const char* fork : {"fork", "__libc_fork", "__run_prefork_handlers"}) {
    model::Stack stack = in_libc({"pthread_mutex_lock"});
    stack.frames.insert(stack.frames.begin() + 2, frame(fork, kLibc));
    EXPECT_TRUE(recognise(in_futex(), stack, no_callee).is_in_fork) << fork;
    // _Fork() runs no atfork handler, so a thread in this call is not stuck in a handler. The call only takes long if
    // the process is big.
    EXPECT_FALSE(recognise(in_futex(), in_libc({"_Fork", fork}), no_callee).is_in_fork) << fork;
  }
  model::Stack own = in_libc({"pthread_mutex_lock"});
  own.frames[1].function = "fork";  // a function of the program with the name "fork"
  EXPECT_FALSE(recognise(in_futex(), own, no_callee).is_in_fork);
}

TEST(InExit, IsSeenByTheFrameOfExit) {
  model::Stack stack = in_libc({"pthread_join"});
  stack.frames.insert(stack.frames.begin() + 2, frame("__run_exit_handlers", kLibc));
  EXPECT_TRUE(recognise(in_futex(), stack, no_callee).is_in_exit);
  EXPECT_FALSE(recognise(in_futex(), in_libc({"pthread_join"}), no_callee).is_in_exit);
}

}  // namespace
}  // namespace forksight::inspect
