// Tests the decisions of a run with made-up data: which processes it ends, which findings it withdraws, and its exit
// status.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "session/exit.hpp"
#include "session/job.hpp"
#include "session/kill.hpp"
#include "session/reported_findings.hpp"

namespace forksight {
namespace {

using model::Liveness;
using proc::ProcessKey;

constexpr ProcessKey kParent{10, 1};
constexpr ProcessKey kChild{11, 2};
constexpr int kFails = 9;

// A run of two processes. A test sets which of them are stuck, and which findings exist.
class RunDecides : public testing::Test {
 protected:
  RunDecides() {
    for (const ProcessKey& key : {kParent, kChild}) {
      model::Process process;
      process.pid = key.pid;
      process.start_ticks = key.start_ticks;
      model_.processes.push_back(process);
    }
    options_.on_hang = OnHang::kKill;
    options_.error_exitcode = kFails;
  }

  void stick(const ProcessKey& key, Liveness liveness) {
    verdicts_[key].key = key;
    verdicts_[key].liveness = liveness;
  }

  static Finding finding(Certainty certainty, const std::string& fingerprint, model::ProcessId process = 1,
                         Outcome outcome = Outcome::kHang) {
    Finding found;
    found.harm = certainty;
    found.outcome = outcome;
    found.fingerprint = fingerprint;
    found.process = process;
    found.processes = {process};
    return found;
  }

  bool ends(const std::vector<Finding>& findings, Certainty least = Certainty::kProven) const {
    return has_hang_to_end(verdicts_, model_, findings, least);
  }
  // The exit status of the run if CMD ended by itself with status 3.
  int status_at_the_end(const std::vector<Finding>& last) const {
    return exit_status(options_, said_.has_at_least(options_.fail_on, last), 3 << 8);
  }

  RunOptions options_;
  model::Model model_;
  Verdicts verdicts_;
  ReportedFindings said_;
};

TEST_F(RunDecides, ToEndAProvenHang) {
  stick(kChild, Liveness::kDead);
  EXPECT_TRUE(ends({finding(Certainty::kProven, "a")}));
  EXPECT_FALSE(ends({})) << "stuck, but no finding explains it";
  EXPECT_FALSE(ends({finding(Certainty::kProven, "a", 0)})) << "the finding is about a process that is not stuck";
  EXPECT_FALSE(ends({finding(Certainty::kProven, "a", 1, Outcome::kCured)}));
  EXPECT_FALSE(ends({finding(Certainty::kProven, "a", 1, Outcome::kError)}));
}

TEST_F(RunDecides, ToEndALikelyHangOnDemand) {
  stick(kChild, Liveness::kDead);
  const std::vector<Finding> likely{finding(Certainty::kLikely, "a")};
  EXPECT_FALSE(ends(likely));
  EXPECT_TRUE(ends(likely, Certainty::kLikely));
  EXPECT_FALSE(ends({finding(Certainty::kPossible, "a")}, Certainty::kLikely));
}

TEST_F(RunDecides, NotToEndAnAwakeProcessWithStuckThreads) {
  stick(kChild, Liveness::kAwake);
  EXPECT_FALSE(ends({finding(Certainty::kLikely, "a")}, Certainty::kLikely));
  EXPECT_TRUE(ends({finding(Certainty::kProven, "a")}));
}

TEST_F(RunDecides, ByPidAndStartTimeOfAProcess) {
  stick({kChild.pid, kChild.start_ticks + 1}, Liveness::kDead);
  EXPECT_FALSE(ends({finding(Certainty::kProven, "a")})) << "another process has the pid of the child now";
  model_.processes[1].start_ticks = 0;
  EXPECT_TRUE(ends({finding(Certainty::kProven, "a")})) << "a trace may lack the start time";
}

TEST_F(RunDecides, WhichProcessesToEnd) {
  const ProcessKey away{20, 3};
  const ProcessKey waits{21, 4};
  stick(kChild, Liveness::kDead);
  stick(away, Liveness::kDead);
  stick(waits, Liveness::kDeadButForSignal);
  verdicts_[waits].ways_out = {"a handler of signal 14"};
  // These processes have left the process tree, and may go on with other work.
  std::int32_t pid = 30;
  for (const Liveness alive : {Liveness::kAwake, Liveness::kSpinning, Liveness::kStalled, Liveness::kVictim})
    stick({pid++, 5}, alive);
  EXPECT_EQ(find_targets({kParent, kChild}, verdicts_), (std::vector{kParent, kChild, away}));
  EXPECT_TRUE(find_targets({}, {}).empty());
}

TEST_F(RunDecides, WhichProcessesOfAJobToEndBeforeItsLimit) {
  const auto dead = [&](const std::vector<Finding>& findings) { return find_proven_dead(verdicts_, model_, findings); };
  stick(kParent, Liveness::kVictim);
  stick(kChild, Liveness::kDead);
  Finding both = finding(Certainty::kProven, "a", 0);
  both.processes = {0, 1};
  EXPECT_EQ(dead({both, finding(Certainty::kProven, "b")}), std::vector{kChild})
      << "each process once, and not the victim";
  EXPECT_TRUE(dead({}).empty()) << "stuck, but no finding explains it";
  EXPECT_TRUE(dead({finding(Certainty::kLikely, "a")}).empty());
  EXPECT_TRUE(dead({finding(Certainty::kProven, "a", 1, Outcome::kError)}).empty());
  verdicts_[kChild].ways_out = {"a handler of signal 14"};
  EXPECT_TRUE(dead({both}).empty());
  stick(kChild, Liveness::kDeadButForSignal);
  verdicts_[kChild].ways_out.clear();
  EXPECT_EQ(dead({both}), std::vector{kChild}) << "only Ctrl-C could end its wait";
  verdicts_[kChild].ways_out = {"a handler of signal 14"};
  EXPECT_TRUE(dead({both}).empty());
  verdicts_[kChild].ways_out.clear();
  for (const Liveness other : {Liveness::kSpinning, Liveness::kStalled, Liveness::kAwake}) {
    stick(kChild, other);
    EXPECT_TRUE(dead({both}).empty());
  }
}

TEST_F(RunDecides, ToFailForAHangThatIsGoneAtTheEnd) {
  stick(kChild, Liveness::kDead);
  said_.note(verdicts_, model_, {finding(Certainty::kProven, "a")});
  EXPECT_EQ(status_at_the_end({}), kFails);
  EXPECT_TRUE(said_.withdraw_unproven({}).empty()) << "a proven hang is not withdrawn";
  EXPECT_EQ(status_at_the_end({}), kFails);
}

TEST_F(RunDecides, ToWithdrawTheHangOfAProcessThatGoesOn) {
  stick(kParent, Liveness::kVictim);
  stick(kChild, Liveness::kDead);
  Finding both = finding(Certainty::kProven, "both", 0);
  both.processes = {0, 1};
  said_.note(verdicts_, model_, {both, finding(Certainty::kProven, "child")});
  EXPECT_EQ(said_.withdraw(kChild), std::vector<std::string>{"child"})
      << "the other finding is also about the parent, which is still stuck";
  EXPECT_EQ(status_at_the_end({}), kFails);
  EXPECT_EQ(said_.withdraw(kParent), std::vector<std::string>{"both"});
  EXPECT_EQ(status_at_the_end({}), 3) << "a withdrawn hang does not change the exit status";
  EXPECT_TRUE(said_.withdraw(kParent).empty());
}

TEST_F(RunDecides, ToWithdrawAnUnprovenHangThatIsGone) {
  stick(kChild, Liveness::kStalled);
  const std::vector<Finding> found{finding(Certainty::kLikely, "slow")};
  said_.note(verdicts_, model_, found);
  EXPECT_TRUE(said_.withdraw_unproven(found).empty()) << "the hang is still found at the end";
  const auto gone = said_.withdraw_unproven({});
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone.at(kChild.pid), std::vector<std::string>{"slow"});
  EXPECT_EQ(status_at_the_end({}), 3);
}

// A signal handler ended the wait of the process, and the process ended before forksight examined it again.
TEST_F(RunDecides, ToWithdrawALikelyHangThatIsGone) {
  stick(kChild, Liveness::kDeadButForSignal);
  said_.note(verdicts_, model_, {finding(Certainty::kLikely, "interrupted")});
  EXPECT_EQ(said_.withdraw_unproven({}).size(), 1U);
  EXPECT_EQ(status_at_the_end({}), 3);
}

TEST_F(RunDecides, ToFailByCertainty) {
  const std::vector<Finding> likely{finding(Certainty::kLikely, "a", 1, Outcome::kMayHang)};
  EXPECT_EQ(status_at_the_end(likely), kFails);
  options_.fail_on = Certainty::kProven;
  EXPECT_EQ(status_at_the_end(likely), 3);
  options_.fail_on = Certainty::kPossible;
  EXPECT_EQ(status_at_the_end(likely), kFails);
  options_.error_exitcode.reset();
  EXPECT_EQ(status_at_the_end(likely), 3) << "no option asks for another status";
}

TEST(ExitStatus, IsThatOfAShell) {
  const RunOptions options;
  EXPECT_EQ(exit_status(options, true, 0), 0);
  EXPECT_EQ(exit_status(options, false, 5 << 8), 5);
  EXPECT_EQ(exit_status(options, false, SIGKILL), 128 + SIGKILL);
  RunOptions zero;
  zero.error_exitcode = 0;
  EXPECT_EQ(exit_status(zero, true, 5 << 8), 0);
}

TEST(JobStatus, IsThatOfTheCommandUnlessItWasEnded) {
  EXPECT_EQ(job_status({.status = 0}), 0);
  EXPECT_EQ(job_status({.status = 7}), 7);
  EXPECT_EQ(job_status({.is_at_limit = true, .status = 128 + SIGTERM}), 124);
  EXPECT_EQ(job_status({.is_command_killed = true, .has_killed = true, .status = 128 + SIGKILL}), 124);
  EXPECT_EQ(job_status({.has_killed = true, .status = 8}), 8);
  EXPECT_EQ(job_status({.has_killed = true, .status = 0}), 124) << "CMD did not notice that a process hung";
}

TEST(LeadTime, IsAQuarterOfTheLimitAndHalfAMinuteAtMost) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  EXPECT_EQ(time_before_limit(seconds(4)), seconds(1));
  EXPECT_EQ(time_before_limit(minutes(2)), seconds(30));
  EXPECT_EQ(time_before_limit(minutes(20)), seconds(30));
}

}  // namespace
}  // namespace forksight
