// Tests the supervisor with real processes. The tests pass the time to poll() as a parameter, so they need not wait
// between two polls.
#include "watch/supervisor.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "fixture_process.hpp"
#include "proc/kernel_work.hpp"
#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "watch/stuck_threads.hpp"

namespace forksight::watch {
namespace {

using Liveness = model::Liveness;
using test::FixtureProcess;

constexpr std::chrono::milliseconds kPace{250};
constexpr int kManyPolls = 12;

class Watch {
 public:
  explicit Watch(const std::string& mode)
      : program_({FORKSIGHT_FIXTURE, mode}),
        ready_(program_.wait_ready()),
        supervisor_(program_.pid(), std::chrono::seconds(1)) {}

  bool ready() const { return ready_; }
  pid_t pid() const { return program_.pid(); }
  Supervisor& supervisor() { return supervisor_; }
  Clock::time_point now() const { return now_; }
  void poll() {
    now_ += kPace;
    supervisor_.poll(now_);
  }

  // Polls until `count` processes are stuck. The fixture writes its byte shortly before the call in which it hangs,
  // so the fixture may still run at the first poll.
  bool wait_stuck(std::size_t count) {
    const auto limit = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < limit) {
      poll();
      if (supervisor_.verdicts().size() >= count) return true;
    }
    return false;
  }

  // Polls until every thread of the first process sleeps, and then many more times. Returns the largest number of stuck
  // processes that a poll found.
  std::size_t stuck_at_most() {
    const auto limit = Clock::now() + std::chrono::seconds(20);
    bool sleeps = false;
    while (!sleeps && Clock::now() < limit) {
      poll();
      bool refused = false;
      const auto round = proc::sample_round(pid(), refused);
      sleeps = round && std::all_of(round->threads.begin(), round->threads.end(),
                                    [](const proc::ThreadSample& thread) { return thread.status.state == 'S'; });
    }
    EXPECT_TRUE(sleeps);
    std::size_t most = 0;
    for (int times = 0; times < kManyPolls; ++times) {
      poll();
      most = std::max(most, supervisor_.verdicts().size());
    }
    return most;
  }

  const Verdict* verdict_of(pid_t process) const {
    for (const auto& [key, verdict] : supervisor_.verdicts()) {
      if (key.pid == process) return &verdict;
    }
    return nullptr;
  }
  // Returns the verdict about a stuck process other than the first process.
  const Verdict* other() const {
    for (const auto& [key, verdict] : supervisor_.verdicts()) {
      if (key.pid != pid()) return &verdict;
    }
    return nullptr;
  }

 private:
  FixtureProcess program_;
  bool ready_;
  Supervisor supervisor_;
  Clock::time_point now_ = Clock::now();
};

// Searches once. The search has no patience, so it looks at each thread only once.
StuckThreads search_once(pid_t pid, GilObservations& seen) {
  return find_stuck_threads(pid, seen, {std::chrono::milliseconds(0), std::chrono::milliseconds(0)});
}

// A thread that waits for the GIL wakes up now and then and checks the GIL. forksight counts the thread as stuck only
// if the thread has checked the GIL between two looks, and waits again. So a search that looks only once never finds
// the ring. On a busy machine each look may come late. Successive searches that keep what earlier searches saw must
// find the ring.
TEST(GilRing, SightingsOfSuccessiveSearchesAdd) {
  FixtureProcess program({FORKSIGHT_PYTHON, "-B", FORKSIGHT_GIL_RING, "hang"});
  ASSERT_TRUE(program.wait_ready());
  GilObservations kept;
  StuckThreads found;
  const auto limit = Clock::now() + std::chrono::seconds(40);
  while (found.empty() && Clock::now() < limit) {
    GilObservations none;
    EXPECT_TRUE(search_once(program.pid(), none).empty());
    found = search_once(program.pid(), kept);
    EXPECT_TRUE(!found.empty() || kept.by_tid.empty() || kept.is_open);
  }
  ASSERT_EQ(found.threads.size(), 2U);
  EXPECT_TRUE(found.has_gil());
  EXPECT_TRUE(found.are_all);
  EXPECT_TRUE(are_still_stuck(program.pid(), found));
}

TEST(GilRing, AWorkerThatSleepsIsInNoRing) {
  FixtureProcess program({FORKSIGHT_PYTHON, "-B", FORKSIGHT_GIL_RING, "slow"});
  ASSERT_TRUE(program.wait_ready());
  GilObservations kept;
  for (int times = 0; times < 200; ++times) EXPECT_TRUE(search_once(program.pid(), kept).empty());
}

void expect_dead(const std::string& mode, Liveness liveness, std::size_t threads) {
  Watch watch(mode);
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(1)) << mode;
  const Verdict* verdict = watch.verdict_of(watch.pid());
  ASSERT_NE(verdict, nullptr);
  EXPECT_EQ(verdict->liveness, liveness);
  EXPECT_EQ(verdict->waits.size(), threads);
  EXPECT_FALSE(verdict->waits_for);
}

TEST(Supervisor, APrivateFutexIsDead) { expect_dead("dead", Liveness::kDead, 1); }
TEST(Supervisor, AllThreadsInFutexesAreDead) { expect_dead("dead-threads", Liveness::kDead, 4); }
TEST(Supervisor, ACaughtSignalMayEndTheWait) { expect_dead("dead-caught", Liveness::kDeadButForSignal, 1); }
TEST(Supervisor, AnEndedFirstThreadDoesNotHideTheOthers) { expect_dead("leader-gone", Liveness::kDead, 2); }
TEST(Supervisor, APlainFutexOnPrivateMemoryIsDead) { expect_dead("plain-private", Liveness::kDead, 1); }
TEST(Supervisor, AWordSharedWithNobodyIsDead) { expect_dead("shared", Liveness::kDead, 1); }
TEST(Supervisor, AReaderOfItsOwnSocketIsDead) { expect_dead("socket-self", Liveness::kDead, 1); }
TEST(Supervisor, AReaderOfItsOwnPipeIsDead) { expect_dead("pipe-self", Liveness::kDead, 1); }

class Silent : public testing::TestWithParam<const char*> {};
TEST_P(Silent, IsNotStuck) {
  Watch watch(GetParam());
  if (std::string(GetParam()) == "userfault" && !watch.ready()) GTEST_SKIP() << "the kernel refuses userfaultfd()";
  ASSERT_TRUE(watch.ready());
  EXPECT_EQ(watch.stuck_at_most(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Supervisor, Silent,
                         testing::Values("timed", "shared-healthy", "vm-sibling", "vm-owner", "vm-owner-of-thread",
                                         "userfault", "reader-of-timed", "parent-adopting", "idle-epoll", "idle-sleep",
                                         "idle-accept", "pipe-healthy", "socket-healthy", "tcp-healthy",
                                         "eventfd-healthy", "flock-healthy", "flock-link-healthy"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class Victims : public testing::TestWithParam<std::pair<const char*, const char*>> {};
TEST_P(Victims, WaitForTheDead) {
  const auto [mode, via] = GetParam();
  Watch watch(mode);
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(2));
  const Verdict* victim = watch.verdict_of(watch.pid());
  const Verdict* dead = watch.other();
  ASSERT_NE(victim, nullptr);
  ASSERT_NE(dead, nullptr);
  EXPECT_EQ(victim->liveness, Liveness::kVictim);
  EXPECT_EQ(victim->via, via);
  EXPECT_EQ(dead->liveness, Liveness::kDead);
  EXPECT_FALSE(dead->waits_for);
  ASSERT_TRUE(victim->waits_for);
  EXPECT_NE(victim->waits_for->pid, watch.pid());
}
INSTANTIATE_TEST_SUITE_P(Supervisor, Victims,
                         testing::Values(std::pair("parent", "wait4"), std::pair("parent-id", "wait4"),
                                         std::pair("pipe-victim", "pipe"), std::pair("socket-victim", "socket"),
                                         std::pair("tcp-victim", "socket"), std::pair("poll-victim", "pipe"),
                                         std::pair("epoll-victim", "pipe"), std::pair("select-victim", "pipe"),
                                         std::pair("flock-victim", "flock"), std::pair("fcntl-victim", "fcntl"),
                                         std::pair("flock-link-victim", "flock"), std::pair("vfork-victim", "vfork"),
                                         std::pair("shared-victim", "shared memory")),
                         [](const auto& test) {
                           std::string name = test.param.first;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// `why` looks only once.
TEST(Supervisor, OneLookFindsTheHolderOfAFileLockByAnotherPath) {
  Watch watch("flock-link-victim");
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(2));
  Supervisor once(watch.pid(), std::chrono::seconds(1));
  once.poll_at_any_age(Clock::now());
  EXPECT_EQ(once.verdicts().size(), 2U);
}

// The process that took the lock hangs, but its child has the same open file, and could release the lock.
TEST(Supervisor, AChildOfTheProcessThatTookAFileLockMayReleaseIt) {
  Watch watch("flock-link-heir");
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(1));
  EXPECT_EQ(watch.stuck_at_most(), 1U);
  EXPECT_EQ(watch.verdict_of(watch.pid()), nullptr);
}

// Only the dead process and the victim have the eventfd. But if the machine has memory control groups of version 1, the
// kernel may write to the eventfd, too.
TEST(Supervisor, AWaitForAnEventfdMayDependOnTheKernel) {
  Watch watch("eventfd-victim");
  ASSERT_TRUE(watch.ready());
  if (proc::has_memory_groups_of_version_1()) {
    ASSERT_TRUE(watch.wait_stuck(1));
    EXPECT_EQ(watch.stuck_at_most(), 1U);
    EXPECT_EQ(watch.verdict_of(watch.pid()), nullptr);
    ASSERT_NE(watch.other(), nullptr);
    EXPECT_EQ(watch.other()->liveness, Liveness::kDead);
    return;
  }
  ASSERT_TRUE(watch.wait_stuck(2));
  const Verdict* victim = watch.verdict_of(watch.pid());
  ASSERT_NE(victim, nullptr);
  EXPECT_EQ(victim->liveness, Liveness::kVictim);
  EXPECT_EQ(victim->via, "eventfd");
}

TEST(Supervisor, ThreadsAreStuckInAProcessThatGoesOn) {
  Watch watch("partly-dead");
  ASSERT_TRUE(watch.ready());
  const auto limit = Clock::now() + std::chrono::seconds(20);
  const auto both = [&] {
    const Verdict* verdict = watch.verdict_of(watch.pid());
    return verdict != nullptr && verdict->waits.size() == 2;
  };
  while (!both() && Clock::now() < limit) watch.poll();
  ASSERT_TRUE(both());
  const Verdict& verdict = *watch.verdict_of(watch.pid());
  EXPECT_EQ(verdict.liveness, Liveness::kAwake);
  for (const model::Wait& wait : verdict.waits) {
    EXPECT_TRUE(wait.is_stuck);
    EXPECT_EQ(wait.owner, verdict.waits[0].owner) << "one thread waits for its own lock, the other joins that thread";
  }
}

// A thread that goes on could send the signal, and the handler could jump out of the wait for the lock.
TEST(Supervisor, AHandlerMayEndTheWaitsOfSomeThreads) {
  for (const bool has_handler : {false, true}) {
    Watch watch(has_handler ? "partly-dead-caught" : "partly-dead");
    ASSERT_TRUE(watch.ready());
    ASSERT_TRUE(watch.wait_stuck(1));
    EXPECT_EQ(watch.verdict_of(watch.pid())->may_be_timed_out, has_handler);
  }
}

TEST(Supervisor, ATimerMayEndAProcess) {
  Watch watch("parent-of-timed");
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(2));
  for (const auto& [key, verdict] : watch.supervisor().verdicts()) EXPECT_TRUE(verdict.may_be_timed_out);
}

TEST(Supervisor, ATimerMaySendTheSignalOfAFault) {
  Watch watch("timed-trap");
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(1));
  EXPECT_EQ(watch.verdict_of(watch.pid())->liveness, Liveness::kDeadButForSignal);
  EXPECT_TRUE(watch.verdict_of(watch.pid())->may_be_timed_out);
}

TEST(Supervisor, AChildMayHaveAskedForAnotherSignalAtItsEnd) {
  Watch watch("exit-signal");
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(1));
  EXPECT_TRUE(watch.verdict_of(watch.pid())->may_be_timed_out);
}

TEST(Supervisor, AReceiveTimeoutEndsTheWait) {
  Watch watch("socket-timed");
  ASSERT_TRUE(watch.wait_stuck(1));
  for (int times = 0; times < kManyPolls; ++times) watch.poll();
  EXPECT_EQ(watch.supervisor().verdicts().size(), 1U);
  EXPECT_EQ(watch.verdict_of(watch.pid()), nullptr);
}

TEST(Supervisor, AWaitForAnyChildDependsOnAllChildren) {
  Watch watch("parent-any");
  ASSERT_TRUE(watch.wait_stuck(3));
  EXPECT_EQ(watch.verdict_of(watch.pid())->liveness, Liveness::kVictim);
}

TEST(Supervisor, AHealthyChildKeepsItsParentAwake) {
  Watch watch("parent-mixed");
  ASSERT_TRUE(watch.wait_stuck(1));
  for (int times = 0; times < kManyPolls; ++times) {
    watch.poll();
    EXPECT_EQ(watch.supervisor().verdicts().size(), 1U);
    EXPECT_EQ(watch.verdict_of(watch.pid()), nullptr);
  }
}

TEST(Supervisor, VictimsOfVictimsAreVictims) {
  Watch watch("grandparent");
  ASSERT_TRUE(watch.wait_stuck(3));
  std::size_t dead = 0;
  for (const auto& [key, verdict] : watch.supervisor().verdicts()) dead += verdict.liveness == Liveness::kDead ? 1 : 0;
  EXPECT_EQ(dead, 1U);
  EXPECT_EQ(watch.verdict_of(watch.pid())->liveness, Liveness::kVictim);
}

TEST(Supervisor, ARingOfPipesIsItsOwnCause) {
  Watch watch("pipe-ring");
  ASSERT_TRUE(watch.wait_stuck(2));
  for (const auto& [key, verdict] : watch.supervisor().verdicts()) {
    EXPECT_EQ(verdict.liveness, Liveness::kDead);
    EXPECT_TRUE(verdict.waits_for);
  }
}

TEST(Supervisor, AWriterToAPipeThatTheDeadShouldReadIsAVictim) {
  Watch watch("pipe-full");
  ASSERT_TRUE(watch.wait_stuck(2));
  EXPECT_EQ(watch.verdict_of(watch.pid())->liveness, Liveness::kDead);
  EXPECT_EQ(watch.other()->liveness, Liveness::kVictim);
  EXPECT_EQ(watch.other()->waits_for->pid, watch.pid());
}

TEST(Supervisor, TheTimeOfTheFirstProofIsKept) {
  Watch watch("dead");
  ASSERT_TRUE(watch.wait_stuck(1));
  const auto since = watch.verdict_of(watch.pid())->since;
  watch.poll();
  EXPECT_EQ(watch.verdict_of(watch.pid())->since, since);
}

TEST(Supervisor, PollAtAnyAgeReportsAFreshHang) {
  Watch watch("dead");
  const auto limit = Clock::now() + std::chrono::seconds(20);
  while (watch.supervisor().verdicts().empty() && Clock::now() < limit) {
    watch.supervisor().poll_at_any_age(watch.now());  // now() does not advance
  }
  EXPECT_EQ(watch.supervisor().verdicts().size(), 1U);
}

// A signal handler interrupts the wait of the process, and the process then waits again. The supervisor must measure
// the time of the hang from the new wait.
TEST(Supervisor, TheTimeOfAHangStartsAgainIfTheProcessRan) {
  Watch watch("dead-caught");
  ASSERT_TRUE(watch.wait_stuck(1));
  const auto before = watch.verdict_of(watch.pid())->since;
  ASSERT_EQ(::kill(watch.pid(), SIGUSR1), 0);
  const auto limit = Clock::now() + std::chrono::seconds(20);
  const auto started_anew = [&] {
    const Verdict* verdict = watch.verdict_of(watch.pid());
    return verdict != nullptr && verdict->since > before;
  };
  while (!started_anew() && Clock::now() < limit) watch.poll();
  EXPECT_TRUE(started_anew());
}

TEST(Supervisor, AnEndedProcessIsForgotten) {
  Watch watch("dead");
  ASSERT_TRUE(watch.wait_stuck(1));
  ASSERT_EQ(::kill(watch.pid(), SIGKILL), 0);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(watch.pid()), &info, WEXITED | WNOWAIT), 0);
  watch.poll();
  EXPECT_TRUE(watch.supervisor().verdicts().empty());
}

// Another program has an epoll instance, too. The kernel cannot compare the two instances any more when that program
// has ended.
TEST(Supervisor, TheEndOfAnUnrelatedProcessDoesNotChangeAVerdict) {
  auto other = std::make_optional<FixtureProcess>(std::vector<std::string>{FORKSIGHT_FIXTURE, "idle-epoll"});
  ASSERT_TRUE(other->wait_ready());
  Watch watch("epoll-victim");
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(2));
  other.reset();
  for (int times = 0; times < kManyPolls; ++times) {
    watch.poll();
    EXPECT_EQ(watch.supervisor().verdicts().size(), 2U);
  }
}

// Each of the 200 epoll instances must be compared with all others. One look may make 65,536 comparisons
// (files::kMaxPolledDescriptors). So no pair may be compared twice.
TEST(Supervisor, ManyEventLoopsAreStuck) {
  Watch watch("event-loops");
  ASSERT_TRUE(watch.ready());
  EXPECT_TRUE(watch.wait_stuck(201));
}

// Both processes read from a pipe that nobody else has. When one of them is killed, the other one is still stuck.
TEST(Supervisor, AProcessRemainsStuckIfAnotherStuckProcessEnds) {
  Watch watch("pipe-readers");
  ASSERT_TRUE(watch.ready());
  ASSERT_TRUE(watch.wait_stuck(2));
  const pid_t killed = watch.other()->key.pid;
  ASSERT_EQ(::kill(killed, SIGKILL), 0);
  const auto limit = Clock::now() + std::chrono::seconds(20);
  const auto is_alone = [&] { return watch.verdict_of(killed) == nullptr && watch.verdict_of(watch.pid()) != nullptr; };
  while (!is_alone() && Clock::now() < limit) watch.poll();
  EXPECT_TRUE(is_alone());
}

// The writer of the pipe is a process of the tree, and is awake. So the other processes of the machine do not matter.
TEST(Supervisor, AWaitThatTheTreeExplainsNeedsNoScanOfTheMachine) {
  Watch watch("pipe-healthy");
  ASSERT_TRUE(watch.ready());
  bool has_read_tree = false;
  bool has_read_others = false;
  // The parent writes its byte shortly before it reads from the pipe.
  const auto limit = Clock::now() + std::chrono::seconds(20);
  for (int times = 0; times < kManyPolls || (!has_read_tree && Clock::now() < limit); ++times) {
    watch.poll();
    has_read_tree = has_read_tree || watch.supervisor().tables().has_whole(watch.pid());
    has_read_others = has_read_others || watch.supervisor().tables().has_whole(::getppid());
  }
  EXPECT_TRUE(has_read_tree);
  EXPECT_FALSE(has_read_others);
}

// The test has a timer that is not armed and a pidfd, as forksight may inherit them. In /proc these look like those of
// the examined process.
TEST(Supervisor, DescriptorsThatForksightHasDoNotHideAHang) {
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, 0);
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  ASSERT_GE(timer, 0);
  ASSERT_GE(process, 0);
  Watch watch("poll-timer-and-process");
  ASSERT_TRUE(watch.ready());
  EXPECT_TRUE(watch.wait_stuck(2));
  ::close(timer);
  ::close(process);
}

TEST(Tree, AZombieHasEndedUntilItsParentHasWaited) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  Tree tree(::getpid());
  tree.refresh();
  ASSERT_TRUE(tree.living().contains(child));
  EXPECT_TRUE(tree.living().at(child).has_ended);
  EXPECT_FALSE(tree.living().at(::getpid()).has_ended);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto limit = Clock::now() + std::chrono::seconds(20);
  while (tree.living().contains(child) && Clock::now() < limit) tree.refresh();
  EXPECT_FALSE(tree.living().contains(child));
}

// This test program is the outsider. It has a child that is older than the run.
TEST(Tree, AnOutsiderAndItsChildrenDoNotBelongToTheRun) {
  FixtureProcess older({FORKSIGHT_FIXTURE, "dead"});
  ASSERT_TRUE(older.wait_ready());
  ::usleep(20'000);  // the kernel counts start times in units of 10 ms
  FixtureProcess program({FORKSIGHT_FIXTURE, "dead"});
  ASSERT_TRUE(program.wait_ready());
  const auto own = proc::read_stat(::getpid());
  const auto stat = proc::read_stat(program.pid());
  ASSERT_TRUE(own && stat);
  Tree tree(program.pid());
  tree.adopt_outsider({::getpid(), own->start_ticks});
  tree.refresh();
  EXPECT_TRUE(tree.living().at(::getpid()).is_outsider);
  EXPECT_TRUE(tree.living().at(older.pid()).is_outsider);
  EXPECT_FALSE(tree.living().at(program.pid()).is_outsider);
  EXPECT_EQ(tree.first_start(), stat->start_ticks);
}

TEST(Supervisor, AProcessIsIdentifiedByPidAndStartTime) {
  Watch watch("dead");
  ASSERT_TRUE(watch.wait_stuck(1));
  const proc::ProcessKey key = watch.verdict_of(watch.pid())->key;
  EXPECT_TRUE(proc::is_same_process(key));
  EXPECT_FALSE(proc::is_same_process({key.pid, key.start_ticks + 1}));
  EXPECT_FALSE(watch.supervisor().tree().adopt({key.pid, key.start_ticks + 1}));
}

}  // namespace
}  // namespace forksight::watch
