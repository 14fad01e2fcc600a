// Tests the proof of a hang. Most tests violate one condition of the proof, and expect that prove() does not call the
// process stuck.
#include "watch/proof.hpp"
#include "proc/process_traits.hpp"
#include "proc/thread_sample.hpp"
#include "watch/describe_wait.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "proc/wait_class.hpp"

namespace forksight::watch {
namespace {

constexpr std::uint64_t kWait = 0;
constexpr std::uint64_t kWaitBitset = 9;
constexpr std::uint64_t kLockPi = 6;
constexpr std::uint64_t kPrivate = 128;
constexpr std::uint64_t kRealtime = 256;

proc::ThreadSample futex_thread(std::int32_t tid, std::uint64_t operation = kWait | kPrivate) {
  proc::ThreadSample thread;
  thread.tid = tid;
  thread.status.name = "app";
  thread.status.state = 'S';
  thread.status.caught = 1ULL << 31U | 1ULL << 32U;  // signals 32 and 33
  thread.status.voluntary = 5;
  thread.call.in_syscall = true;
  thread.call.number = 202;
  thread.call.args = {0x1000, operation, 2, 0, 0, 0};
  thread.call.sp = 0x7ffe0000;
  thread.call.pc = 0x400000;
  return thread;
}

proc::ThreadSample call_thread(std::int32_t tid, std::int64_t number, std::array<std::uint64_t, 6> args) {
  proc::ThreadSample thread = futex_thread(tid);
  thread.call.number = number;
  thread.call.args = args;
  return thread;
}

ProcessEvidence evidence_of(std::vector<proc::ThreadSample> threads) {
  ProcessEvidence evidence;
  evidence.key = {100, 1};
  evidence.same_process = true;
  evidence.is_x86_64 = true;
  evidence.sharing = proc::Sharing::kAlone;
  for (const proc::ThreadSample& thread : threads) {
    evidence.tids_between.push_back(thread.tid);
    evidence.facts.emplace_back().kernel_function = "futex_do_wait";
  }
  evidence.first.threads = threads;
  evidence.second.threads = std::move(threads);
  return evidence;
}

// Makes the same change to a thread in both rounds.
template <class Change>
void change_both(ProcessEvidence& evidence, std::size_t index, const Change& change) {
  change(evidence.first.threads[index]);
  change(evidence.second.threads[index]);
}

void expect_open(const ProcessEvidence& evidence, const std::string& reason) {
  const Proof proof = prove(evidence);
  EXPECT_FALSE(proof.stuck);
  EXPECT_NE(proof.why_not.find(reason), std::string::npos) << proof.why_not;
}

TEST(Proof, AllThreadsInPrivateFutexesAreDead) {
  const Proof proof = prove(evidence_of({futex_thread(100), futex_thread(101, kWaitBitset | kPrivate | kRealtime)}));
  EXPECT_TRUE(proof.stuck) << proof.why_not;
  EXPECT_FALSE(proof.handler_could);
  EXPECT_TRUE(proof.wakers.empty());
}

TEST(Proof, AnEndedThreadDoesNotMatter) {
  auto evidence = evidence_of({futex_thread(100), futex_thread(101)});
  change_both(evidence, 0, [](proc::ThreadSample& thread) {
    thread.status.state = 'Z';
    thread.call = {};
  });
  EXPECT_TRUE(prove(evidence).stuck);
}

TEST(Proof, AnEndedProcessIsNotDead) {
  auto evidence = evidence_of({futex_thread(100)});
  change_both(evidence, 0, [](proc::ThreadSample& thread) {
    thread.status.state = 'Z';
    thread.call = {};
  });
  expect_open(evidence, "ended");
}

TEST(Proof, ACaughtSignalLeavesAWayOut) {
  auto evidence = evidence_of({futex_thread(100), futex_thread(101)});
  change_both(evidence, 1, [](proc::ThreadSample& thread) { thread.status.caught |= 1ULL << 1U; });
  const Proof proof = prove(evidence);
  EXPECT_TRUE(proof.stuck);
  EXPECT_TRUE(proof.handler_could);
}

constexpr std::uint64_t bit_of(int signal) { return 1ULL << static_cast<unsigned>(signal - 1); }

ProcessEvidence catching(std::uint64_t signals) {
  auto evidence = evidence_of({futex_thread(100)});
  change_both(evidence, 0, [&](proc::ThreadSample& thread) { thread.status.caught |= signals; });
  return evidence;
}

TEST(Proof, NamesTheHandlersThatATimerMayRun) {
  auto evidence = catching(bit_of(SIGTERM) | bit_of(SIGALRM));
  EXPECT_EQ(prove(evidence).timed, 0U);
  evidence.timed_signals = bit_of(SIGALRM) | bit_of(SIGUSR1);
  EXPECT_EQ(prove(evidence).timed, bit_of(SIGALRM));
  change_both(evidence, 0, [](proc::ThreadSample& thread) { thread.status.blocked |= bit_of(SIGALRM); });
  EXPECT_EQ(prove(evidence).timed, 0U);
}

TEST(Proof, HandlersOfFaultsAreNoWayOut) {
  EXPECT_FALSE(prove(catching(bit_of(SIGSEGV) | bit_of(SIGBUS))).handler_could)
      << "a sleeping thread raises no fault; Rust's standard library has these handlers in every program";
  const Proof proof = prove(catching(bit_of(SIGSEGV) | bit_of(SIGTERM)));
  EXPECT_TRUE(proof.handler_could);
  EXPECT_EQ(proof.handlers, bit_of(SIGTERM));
}

TEST(Proof, AHandlerOfABlockedSignalDoesNotRun) {
  auto evidence = catching(bit_of(SIGTERM));
  change_both(evidence, 0, [](proc::ThreadSample& thread) { thread.status.blocked = bit_of(SIGTERM); });
  EXPECT_FALSE(prove(evidence).handler_could);
}

TEST(Proof, PythonsInterruptIsNoWayOut) {
  auto evidence = catching(bit_of(SIGINT));
  EXPECT_EQ(prove(evidence).handlers, bit_of(SIGINT));
  evidence.has_python_interrupt = true;
  EXPECT_EQ(prove(evidence).handlers, 0U);
  EXPECT_TRUE(prove(evidence).handler_could) << "Python's own handler of SIGINT still prevents a proof";
}

TEST(Proof, AHandlerOfSigabrtThatAPythonScriptHasIsAWayOut) {
  auto evidence = catching(bit_of(SIGABRT) | bit_of(SIGSEGV));
  EXPECT_EQ(prove(evidence).handlers, 0U) << "Python's faulthandler";
  evidence.has_python_abort_handler = true;
  EXPECT_EQ(prove(evidence).handlers, bit_of(SIGABRT));
}

TEST(Proof, WithoutLibcAllSignalsCount) {
  auto evidence = catching(0);
  EXPECT_FALSE(prove(evidence).handler_could);
  evidence.has_libc = false;
  EXPECT_EQ(prove(evidence).handlers, bit_of(32) | bit_of(33));
}

TEST(Proof, AFrozenOrSuspendedThreadMayGoOn) {
  for (const char* function : {"do_freezer_trap", "__refrigerator", "seccomp_do_user_notification"}) {
    auto evidence = evidence_of({call_thread(100, 0, {3, 0, 0, 0, 0, 0})});
    evidence.facts[0].wakers_known = true;
    evidence.facts[0].wakers = {{100, "pipe"}};
    EXPECT_TRUE(prove(evidence).stuck);
    evidence.facts[0].kernel_function = function;
    expect_open(evidence, "thread 100 is");
  }
  auto evidence = evidence_of({futex_thread(100)});
  evidence.is_frozen = true;
  expect_open(evidence, "frozen");
}

TEST(Proof, ATimeoutEndsTheWait) {
  auto evidence = evidence_of({futex_thread(100), futex_thread(101)});
  change_both(evidence, 1, [](proc::ThreadSample& thread) { thread.call.args[3] = 0x7ffe1234; });
  expect_open(evidence, "thread 101 may go on");
}

TEST(Proof, ARunningThreadIsAWayOut) {
  auto evidence = evidence_of({futex_thread(100), futex_thread(101)});
  change_both(evidence, 0, [](proc::ThreadSample& thread) {
    thread.call = {};
    thread.call.running = true;
  });
  expect_open(evidence, "thread 100 may go on");
}

TEST(Proof, AStoppedThreadMayBeContinued) {
  for (const char state : {'T', 't', 'D', 'R'}) {
    auto evidence = evidence_of({futex_thread(100)});
    change_both(evidence, 0, [&](proc::ThreadSample& thread) { thread.status.state = state; });
    expect_open(evidence, "may go on");
  }
}

TEST(Proof, AnotherSystemCallIsAWayOut) {
  for (const std::int64_t number :
       {34, 35, 43, 65, 70, 128, 230, 240, 426}) {  // pause, sleep, accept, semop, io_uring…
    auto evidence = evidence_of({futex_thread(100), futex_thread(101)});
    change_both(evidence, 1, [&](proc::ThreadSample& thread) { thread.call.number = number; });
    expect_open(evidence, "thread 101 may go on");
  }
  for (const std::int64_t number : {0, 1, 45, 46, 73}) {  // read, write, recvfrom, sendmsg, flock
    auto evidence = evidence_of({futex_thread(100), futex_thread(101)});
    change_both(evidence, 1, [&](proc::ThreadSample& thread) { thread.call.number = number; });
    expect_open(evidence, "not known");
    EXPECT_FALSE(prove(evidence).lasting);
    evidence.facts[1].is_open_to_all = true;
    EXPECT_TRUE(prove(evidence).lasting);
  }
}

TEST(Proof, OnlyWaitingOperationsCount) {
  for (const std::uint64_t operation : {1U, 3U, 4U, 5U, 7U, 10U, 11U}) {  // wake, requeue, unlock …
    expect_open(evidence_of({futex_thread(100, operation | kPrivate)}), "may go on");
  }
}

TEST(Proof, APlainFutexNeedsAPrivateMapping) {
  auto evidence = evidence_of({futex_thread(100, kWait)});
  evidence.facts[0].mapping = WordMapping::kPrivate;
  EXPECT_TRUE(prove(evidence).stuck);
  evidence.facts[0].mapping = WordMapping::kShared;
  expect_open(evidence, "shared memory");
  EXPECT_FALSE(prove(evidence).lasting);
  evidence.facts[0].is_open_to_all = true;
  EXPECT_TRUE(prove(evidence).lasting);
  evidence.facts[0].mapping = WordMapping::kUnknown;
  expect_open(evidence, "shared memory");
  // If it is known which processes map the word, the proof names these processes as wakers.
  evidence.facts[0].mapping = WordMapping::kShared;
  evidence.facts[0].wakers_known = true;
  evidence.facts[0].wakers = {{200, "shared memory"}};
  EXPECT_TRUE(prove(evidence).stuck);
  EXPECT_EQ(prove(evidence).wakers, evidence.facts[0].wakers);
}

TEST(Proof, APriorityInheritingFutexNeedsAnOwnerInTheProcess) {
  auto evidence = evidence_of({futex_thread(100, kLockPi | kPrivate), futex_thread(101)});
  evidence.facts[0].pi_owner = 101;
  EXPECT_TRUE(prove(evidence).stuck);
  evidence.facts[0].pi_owner = 77;
  expect_open(evidence, "owner");
  evidence.facts[0].pi_owner.reset();
  expect_open(evidence, "owner");
}

TEST(Proof, AnArrivingSignalIsAWayOut) {
  auto evidence = evidence_of({futex_thread(100)});
  evidence.second.threads[0].status.pending = 1ULL << 14U;
  expect_open(evidence, "signal");
  evidence.second.threads[0].status.blocked = 1ULL << 14U;
  EXPECT_TRUE(prove(evidence).stuck);
  evidence.second.threads[0].status.shared_pending = 1ULL << 9U;
  expect_open(evidence, "signal");
}

TEST(Proof, AThreadThatRanBetweenTheRoundsRefutesTheProof) {
  const auto changes = std::vector<void (*)(proc::ThreadSample&)>{
      [](proc::ThreadSample& thread) { ++thread.status.voluntary; },
      [](proc::ThreadSample& thread) { ++thread.status.nonvoluntary; },
      [](proc::ThreadSample& thread) { thread.call.sp += 16; },
      [](proc::ThreadSample& thread) { thread.call.pc += 1; },
      [](proc::ThreadSample& thread) { thread.call.args[0] += 4; },
      [](proc::ThreadSample& thread) {
        thread.call = {};
        thread.call.running = true;
      },
  };
  for (const auto change : changes) {
    auto evidence = evidence_of({futex_thread(100), futex_thread(101)});
    change(evidence.second.threads[1]);
    expect_open(evidence, "thread 101 ran");
  }
}

TEST(Proof, TheListOfThreadsMustNotChange) {
  auto between = evidence_of({futex_thread(100), futex_thread(101)});
  between.tids_between.push_back(102);
  expect_open(between, "came or went");
  auto after = evidence_of({futex_thread(100), futex_thread(101)});
  after.second.threads.push_back(futex_thread(102));
  expect_open(after, "came or went");
  auto before = evidence_of({futex_thread(100), futex_thread(101)});
  before.first.threads.pop_back();
  before.facts.pop_back();
  expect_open(before, "came or went");
  auto unread = evidence_of({futex_thread(100)});
  unread.second.threads.clear();
  expect_open(unread, "came or went");
}

TEST(Proof, TheProcessAsAWholeMustQualify) {
  auto evidence = evidence_of({futex_thread(100)});
  evidence.same_process = false;
  expect_open(evidence, "ended");
  evidence = evidence_of({futex_thread(100)});
  evidence.is_x86_64 = false;
  expect_open(evidence, "x86-64");
  evidence = evidence_of({futex_thread(100)});
  evidence.has_io_uring = true;
  expect_open(evidence, "io_uring");
  evidence = evidence_of({futex_thread(100)});
  evidence.sharing = proc::Sharing::kShared;
  expect_open(evidence, "shares the memory of the process");
  evidence.sharers = {200};
  EXPECT_TRUE(prove(evidence).stuck);
  EXPECT_FALSE(prove(evidence_of({})).stuck);
}

TEST(Proof, TheKernelFunctionMustMatchTheCall) {
  auto evidence = evidence_of({futex_thread(100)});
  evidence.facts[0].kernel_function = "do_freezer_trap";
  expect_open(evidence, "is frozen");
  evidence.facts[0].kernel_function = "do_nothing_known";
  expect_open(evidence, "do_nothing_known");
  for (const char* silent : {"", "0", "futex_wait_queue_me"}) {
    evidence.facts[0].kernel_function = silent;
    EXPECT_TRUE(prove(evidence).stuck) << silent;
  }
}

TEST(Proof, WakersOfChildrenAndPipesAreCollected) {
  auto evidence = evidence_of(
      {futex_thread(100), call_thread(101, 61, {200, 0, 0, 0, 0, 0}), call_thread(102, 0, {3, 0, 0, 0, 0, 0})});
  expect_open(evidence, "not known");
  evidence.facts[1].wakers_known = evidence.facts[2].wakers_known = true;
  evidence.facts[1].wakers = {{200, "wait4"}};
  evidence.facts[2].wakers = {{201, "pipe"}, {100, "pipe"}};
  const Proof proof = prove(evidence);
  EXPECT_TRUE(proof.stuck) << proof.why_not;
  EXPECT_EQ(proof.wakers, (std::vector<Waker>{{200, "wait4"}, {201, "pipe"}, {100, "pipe"}}));
}

TEST(Classify, ReadsTheTargetOfAWait) {
  EXPECT_EQ(proc::classify(call_thread(1, 61, {0xffffffff, 0, 0, 0, 0, 0})).child, -1);
  EXPECT_EQ(proc::classify(call_thread(1, 61, {0, 0, 0, 0, 0, 0})).child, -1);
  EXPECT_EQ(proc::classify(call_thread(1, 61, {0xdead000000001234, 0, 0, 0, 0, 0})).child, 0x1234);
  EXPECT_EQ(proc::classify(call_thread(1, 247, {1, 77, 0, 4, 0, 0})).child, 77);
  EXPECT_EQ(proc::classify(call_thread(1, 247, {0, 0, 0, 4, 0, 0})).child, -1);
  EXPECT_EQ(proc::classify(call_thread(1, 247, {3, 9, 0, 4, 0, 0})).pidfd, 9);
  EXPECT_EQ(proc::classify(call_thread(1, 247, {99, 9, 0, 4, 0, 0})).kind, proc::WaitClass::kAwakable);
  EXPECT_EQ(proc::classify(call_thread(1, 0, {5, 0, 0, 0, 0, 0})).kind, proc::WaitClass::kRead);
  EXPECT_EQ(proc::classify(call_thread(1, 1, {5, 0, 0, 0, 0, 0})).kind, proc::WaitClass::kWrite);
}

TEST(Classify, DistinguishesWaitsWithATimeLimit) {
  EXPECT_EQ(proc::classify(call_thread(1, 7, {0x1000, 2, 0xffffffff, 0, 0, 0})).kind, proc::WaitClass::kPoll);
  EXPECT_EQ(proc::classify(call_thread(1, 7, {0x1000, 2, 0, 0, 0, 0})).kind, proc::WaitClass::kAwakable);
  EXPECT_EQ(proc::classify(call_thread(1, 23, {4, 0x1000, 0, 0, 0, 0})).kind, proc::WaitClass::kPoll);
  EXPECT_EQ(proc::classify(call_thread(1, 23, {4, 0x1000, 0, 0, 0x2000, 0})).kind, proc::WaitClass::kAwakable);
  EXPECT_EQ(proc::classify(call_thread(1, 232, {4, 0x1000, 8, 0xffffffff, 0, 0})).kind, proc::WaitClass::kPoll);
  EXPECT_EQ(proc::classify(call_thread(1, 299, {4, 0x1000, 8, 0, 0x2000, 0})).kind, proc::WaitClass::kAwakable);
}

TEST(Classify, KnowsFileLocksVforkAndTracers) {
  EXPECT_EQ(proc::classify(call_thread(1, 73, {4, 2, 0, 0, 0, 0})).kind, proc::WaitClass::kFileLock);
  EXPECT_EQ(proc::classify(call_thread(1, 72, {4, 7, 0x1000, 0, 0, 0})).kind, proc::WaitClass::kFileLock);
  EXPECT_EQ(proc::classify(call_thread(1, 72, {4, 6, 0x1000, 0, 0, 0})).kind, proc::WaitClass::kAwakable);
  proc::ThreadSample spawning = call_thread(1, 58, {});
  spawning.status.state = 'D';
  EXPECT_EQ(proc::classify(spawning).kind, proc::WaitClass::kVfork);
  spawning.status.state = 'R';
  EXPECT_EQ(proc::classify(spawning).kind, proc::WaitClass::kAwakable);
  proc::ThreadSample traced = futex_thread(1);
  traced.status.state = 't';
  EXPECT_EQ(proc::classify(traced).kind, proc::WaitClass::kAwakable);
  traced.status.tracer = 7;
  EXPECT_EQ(proc::classify(traced).kind, proc::WaitClass::kTraced);
}

TEST(DescribeWait, FillsTheFieldsOfTheModel) {
  const model::Wait futex = describe_wait(futex_thread(7, kWait), nullptr);
  EXPECT_EQ(futex.kind, model::WaitKind::kFutex);
  EXPECT_EQ(futex.object, 0x1000U);
  EXPECT_TRUE(futex.is_shared);
  WaitFacts facts;
  facts.mapping = WordMapping::kPrivate;
  EXPECT_FALSE(describe_wait(futex_thread(7, kWait), &facts).is_shared);
  EXPECT_FALSE(describe_wait(futex_thread(7), nullptr).is_shared);
  proc::ThreadSample timed = futex_thread(7);
  timed.call.args[3] = 1;
  EXPECT_TRUE(describe_wait(timed, nullptr).has_timeout);
  EXPECT_EQ(describe_wait(call_thread(7, 61, {55, 0, 0, 0, 0, 0}), nullptr).target_pid, 55);
  EXPECT_EQ(describe_wait(call_thread(7, 35, {55, 0, 0, 0, 0, 0}), nullptr).kind, model::WaitKind::kSleep);
  EXPECT_TRUE(describe_wait(call_thread(7, 7, {1, 1, 500, 0, 0, 0}), nullptr).has_timeout);
  EXPECT_FALSE(describe_wait(call_thread(7, 7, {1, 1, 0xffffffff, 0, 0, 0}), nullptr).has_timeout);
}

}  // namespace
}  // namespace forksight::watch
