// Tests what run.json contains about a process that was stuck. If the process continues, run.json contains nothing
// about the hang. If the process ends while it is stuck, run.json still contains the hang.
#include "session/history.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "proc/proc_fs.hpp"

namespace forksight {
namespace {

using proc::ProcessKey;
using watch::Clock;
using watch::Verdict;

// A child that does nothing until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  ProcessKey key() const { return {pid_, proc::read_stat(pid_).value().start_ticks}; }
  // Ends the process, which stays a zombie.
  void end() const {
    kill(pid_, SIGKILL);
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }

 private:
  pid_t pid_;
};

// A Sleeper, and a supervisor that has examined it once.
struct WatchedSleeper {
  WatchedSleeper() { supervisor.poll(Clock::now()); }

  Sleeper child;
  ProcessKey key = child.key();
  watch::Supervisor supervisor{key.pid, std::chrono::seconds(1)};
};

std::map<ProcessKey, Verdict> verdict_of(const ProcessKey& key) {
  Verdict verdict;
  verdict.key = key;
  verdict.liveness = model::Liveness::kAwake;
  verdict.unheard_signals = 0x4000;
  verdict.unheard_since = Clock::now();
  return {{key, verdict}};
}

std::uint64_t unheard_in(const RunHistory& history, const watch::Supervisor& supervisor, const ProcessKey& key) {
  for (const collect::LoggedProcess& row : history.log(supervisor).processes) {
    if (row.pid == key.pid) return row.unheard_signals;
  }
  ADD_FAILURE() << "no row";
  return 0;
}

TEST(RunHistory, WithdrawsWhatWasNotProvenIfTheProcessGoesOn) {
  const WatchedSleeper sleeper;
  const auto& [child, key, supervisor] = sleeper;
  RunHistory history({"sleeper"});
  history.note(supervisor, verdict_of(key), Clock::now());
  EXPECT_EQ(unheard_in(history, supervisor, key), 0x4000U);
  history.note(supervisor, {}, Clock::now());
  EXPECT_EQ(unheard_in(history, supervisor, key), 0U);
}

model::Liveness liveness_in(const RunHistory& history, const watch::Supervisor& supervisor, const ProcessKey& key) {
  for (const collect::LoggedProcess& row : history.log(supervisor).processes) {
    if (row.pid == key.pid) return row.liveness;
  }
  ADD_FAILURE() << "no row";
  return model::Liveness::kUnknown;
}

model::Wait wait_of(std::int32_t tid, model::WaitKind kind) {
  model::Wait wait;
  wait.tid = tid;
  wait.kind = kind;
  return wait;
}

// Returns the wait that run.json contains about a thread. The thread waited as in `sampled` when the process was found
// stuck, and as in `seen` when it was examined later.
model::Wait join_looks(model::Liveness liveness, model::Wait sampled, model::Wait seen) {
  const WatchedSleeper sleeper;
  const auto& [child, key, supervisor] = sleeper;
  RunHistory history({"sleeper"});
  auto stuck = verdict_of(key);
  stuck[key].liveness = liveness;
  sampled.tid = key.pid;
  seen.tid = key.pid;
  stuck[key].waits = {sampled};
  history.note(supervisor, stuck, Clock::now());
  model::Model look;
  look.processes.emplace_back();
  look.processes[0].pid = key.pid;
  look.processes[0].start_ticks = key.start_ticks;
  look.processes[0].waits = {seen};
  look.processes[0].waits[0].stack.frames.resize(7);
  history.note_look(look);
  for (const collect::LoggedProcess& row : history.log(supervisor).processes) {
    if (row.pid == key.pid) return row.waits.at(0);
  }
  ADD_FAILURE() << "no row";
  return {};
}

model::Wait join_looks(model::Liveness liveness, model::WaitKind sampled, model::WaitKind seen) {
  return join_looks(liveness, wait_of(0, sampled), wait_of(0, seen));
}

// On a busy machine, the examination may not prove again what the supervisor has proved.
TEST(RunHistory, KeepsTheProvenWakersIfTheExaminationProvedNone) {
  model::Wait proven = wait_of(0, model::WaitKind::kPipeRead);
  proven.wakers = {model::Waker{1234, 0, 5, "pipe"}};
  proven.wakers_known = true;
  const model::Wait seen = wait_of(0, model::WaitKind::kPipeRead);
  const model::Wait kept = join_looks(model::Liveness::kDead, proven, seen);
  EXPECT_TRUE(kept.wakers_known);
  ASSERT_EQ(kept.wakers.size(), 1U);
  EXPECT_EQ(kept.wakers[0].pid, 1234);
  EXPECT_EQ(kept.stack.frames.size(), 7U);
}

TEST(RunHistory, TakesTheWakersOfTheExaminationIfItProvedThem) {
  model::Wait proven = wait_of(0, model::WaitKind::kPipeRead);
  proven.wakers = {model::Waker{1234, 0, 5, "pipe"}};
  proven.wakers_known = true;
  model::Wait seen = proven;
  seen.wakers = {model::Waker{4321, 0, 6, "pipe"}};
  const model::Wait kept = join_looks(model::Liveness::kDead, proven, seen);
  ASSERT_EQ(kept.wakers.size(), 1U);
  EXPECT_EQ(kept.wakers[0].pid, 4321);
}

// A sample may find a spinning thread running, ready to run, or stopped by a process that examines it.
TEST(RunHistory, KeepsTheStackOfASpinningThreadInEachOfItsStates) {
  for (const auto liveness : {model::Liveness::kStalled, model::Liveness::kSpinning}) {
    const model::Wait kept = join_looks(liveness, model::WaitKind::kOther, model::WaitKind::kRunning);
    EXPECT_EQ(kept.kind, model::WaitKind::kRunning);
    EXPECT_EQ(kept.stack.frames.size(), 7U);
  }
}

TEST(RunHistory, KeepsNoStackOfAnotherWait) {
  const model::Wait kept = join_looks(model::Liveness::kDead, model::WaitKind::kPipeRead, model::WaitKind::kFutex);
  EXPECT_EQ(kept.kind, model::WaitKind::kPipeRead);
  EXPECT_TRUE(kept.stack.frames.empty());
}

// The sleeper is in pause(), which a signal of another process may end. So the supervisor counts the sleeper as awake.
TEST(RunHistory, WithdrawsAProvenHangIfItsProcessStaysAwake) {
  const WatchedSleeper sleeper;
  const auto& [child, key, supervisor] = sleeper;
  RunHistory history({"sleeper"});
  auto stuck = verdict_of(key);
  stuck[key].liveness = model::Liveness::kDead;
  const auto now = Clock::now();
  EXPECT_TRUE(history.note(supervisor, stuck, now).empty());
  EXPECT_TRUE(history.note(supervisor, {}, now).empty()) << "a process that examined it may have woken it for a moment";
  EXPECT_EQ(liveness_in(history, supervisor, key), model::Liveness::kDead);
  EXPECT_TRUE(history.has_stuck());
  EXPECT_EQ(history.note(supervisor, {}, now + std::chrono::seconds(2)), std::vector{key});
  EXPECT_EQ(liveness_in(history, supervisor, key), model::Liveness::kAwake);
  EXPECT_FALSE(history.has_stuck());
}

TEST(RunHistory, KeepsTheHangOfAProcessThatIsStopped) {
  WatchedSleeper sleeper;
  const ProcessKey& key = sleeper.key;
  RunHistory history({"sleeper"});
  auto stuck = verdict_of(key);
  stuck[key].liveness = model::Liveness::kDead;
  const auto now = Clock::now();
  history.note(sleeper.supervisor, stuck, now);
  ASSERT_EQ(kill(key.pid, SIGSTOP), 0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(key.pid), &info, WSTOPPED | WNOWAIT), 0);
  sleeper.supervisor.poll(now);
  for (const int seconds : {0, 2, 20}) {
    EXPECT_TRUE(history.note(sleeper.supervisor, {}, now + std::chrono::seconds(seconds)).empty());
  }
  EXPECT_EQ(liveness_in(history, sleeper.supervisor, key), model::Liveness::kDead);
}

TEST(RunHistory, WithdrawsTheHangOfAProcessThatEndsByItself) {
  const WatchedSleeper sleeper;
  const auto& [child, key, supervisor] = sleeper;
  auto stuck = verdict_of(key);
  stuck[key].liveness = model::Liveness::kDead;
  RunHistory told({"sleeper"});
  told.note(supervisor, stuck, Clock::now());
  EXPECT_FALSE(told.note_end(key, 0, false)) << "forksight ended the process";
  EXPECT_EQ(liveness_in(told, supervisor, key), model::Liveness::kDead);
  RunHistory by_itself({"sleeper"});
  by_itself.note(supervisor, stuck, Clock::now());
  EXPECT_TRUE(by_itself.note_end(key, 0, true));
  EXPECT_EQ(liveness_in(by_itself, supervisor, key), model::Liveness::kEnded);
}

TEST(RunHistory, KeepsTheHangOfAProcessThatIsAZombie) {
  const WatchedSleeper sleeper;
  const auto& [child, key, supervisor] = sleeper;
  RunHistory history({"sleeper"});
  history.note(supervisor, verdict_of(key), Clock::now());
  child.end();
  EXPECT_TRUE(proc::is_ending(key));
  history.note(supervisor, {}, Clock::now());
  EXPECT_EQ(unheard_in(history, supervisor, key), 0x4000U);
}

}  // namespace
}  // namespace forksight
