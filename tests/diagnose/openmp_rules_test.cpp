#include <gtest/gtest.h>
#include <signal.h>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::PoolScene;
using test::PoolTrace;
using test::read_model;

model::Model touched(const PoolScene& pool, std::uint32_t team = 4) {
  PoolTrace scene(pool);
  scene.touch(team);
  return read_model(scene.trace);
}

TEST(LostOpenmpPool, HangsIfTheRegionDoesNotEnd) {
  const model::Model model = touched({.workers = 3});
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.rule, "lost-openmp-pool");
  EXPECT_EQ(finding.harm, Certainty::kProven);
  EXPECT_EQ(finding.outcome, Outcome::kHang);
  EXPECT_EQ(finding.culprit.kind, CulpritKind::kPool);
  EXPECT_EQ(finding.culprit.name, "libgomp pool of 4 threads");
  EXPECT_EQ(finding.culprit.library, "/usr/lib/libgomp.so.1");
  EXPECT_EQ(finding.culprit.holder->tid, test::kHolder);
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_TRUE(finding.fixes[0].verified);
  EXPECT_NE(finding.fixes[0].text.find("--omp=rebuild"), std::string::npos);
}

TEST(LostOpenmpPool, IsLikelyIfTheTeamSizeIsAGuess) {
  PoolTrace scene({.workers = 3});
  scene.touch(4, trace::kTouchTeamGuess);
  model::Model model = read_model(scene.trace);
  ASSERT_EQ(diagnose(model).size(), 1U);
  EXPECT_EQ(diagnose(model)[0].harm, Certainty::kLikely) << "OMP_DYNAMIC may have given a team of one";
  model.processes[model.touches[0].process].liveness = model::Liveness::kDead;
  EXPECT_EQ(diagnose(model)[0].harm, Certainty::kProven) << "proven dead";
}

TEST(LostOpenmpPool, TheSummaryNamesTheRegionThePoolAndTheFork) {
  model::Model model = touched({.workers = 1}, 2);
  model.touches[0].stack = test::make_stack({"GOMP_parallel libgomp.so.1", "work app.c:31", "main app.c:40"});
  model.pools[0].made_at = test::make_stack({"GOMP_parallel libgomp.so.1", "work app.c:12"});
  model.forks[0].stack = test::make_stack({"main app.c:20"});
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary,
            "child 2000 hangs in #pragma omp parallel (app.c:31): its libgomp pool of 2 threads was made at app.c:12 "
            "and lost in fork() at "
            "app.c:20");
}

TEST(LostOpenmpPool, IsSilentWhereItDoesNotHang) {
  EXPECT_TRUE(diagnose(touched({.workers = 3}, 1)).empty()) << "the team has only one thread";
  EXPECT_TRUE(diagnose(touched({.workers = 0})).empty()) << "no worker was lost";
  EXPECT_TRUE(diagnose(touched({.kind = trace::RuntimeKind::kLibomp})).empty()) << "the runtime rebuilds its pool";
  EXPECT_TRUE(diagnose(touched({.flags = trace::kRebuildsItself})).empty()) << "the runtime rebuilds its pool";
  PoolTrace untouched({});
  EXPECT_TRUE(diagnose(read_model(untouched.trace)).empty()) << "no region in the child";
  PoolTrace returned({});
  returned.end(returned.touch(4));
  EXPECT_TRUE(diagnose(read_model(returned.trace)).empty()) << "the region ended";
}

TEST(LostOpenmpPool, IsCuredByEachMethod) {
  const std::pair<trace::CureMethod, const char*> methods[] = {{trace::CureMethod::kRebuild, "rebuild"},
                                                               {trace::CureMethod::kQuiesce, "quiesce"},
                                                               {trace::CureMethod::kClamp, "clamp"}};
  for (const auto& [method, name] : methods) {
    PoolTrace scene({});
    scene.cure(method, trace::CureResult::kApplied, false);
    EXPECT_TRUE(diagnose(read_model(scene.trace)).empty()) << "nothing was touched yet";
    scene.cure(method, trace::CureResult::kApplied, true);
    const auto findings = diagnose(read_model(scene.trace));
    ASSERT_EQ(findings.size(), 1U) << name;
    EXPECT_EQ(findings[0].outcome, Outcome::kCured);
    EXPECT_EQ(findings[0].harm, Certainty::kProven);
    EXPECT_NE(findings[0].summary.find(std::string("would have hung in ")), std::string::npos);
    EXPECT_NE(findings[0].summary.find(std::string("cured by ") + name), std::string::npos) << findings[0].summary;
    EXPECT_NE(findings[0].fixes[0].text.find(std::string("--omp=") + name), std::string::npos);
  }
}

// A quiesce ends the workers before the fork, so the fork loses none. Without the quiesce, the fork would have lost
// workers.
TEST(LostOpenmpPool, IsCuredEvenIfNoWorkerIsLeftAtTheFork) {
  PoolTrace scene({.workers = 0});
  scene.cure(trace::CureMethod::kQuiesce, trace::CureResult::kApplied, true);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kCured);
}

TEST(LostOpenmpPool, DoesNotAdviseTheCureThatWasRefused) {
  PoolTrace scene({});
  scene.cure(trace::CureMethod::kRebuild, trace::CureResult::kRefusedNoImage, false);
  scene.touch(4);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  for (const Fix& fix : findings[0].fixes) EXPECT_EQ(fix.text.find("--omp=rebuild"), std::string::npos) << fix.text;
}

TEST(LostOpenmpPool, NamesTheCureThatWasRefused) {
  for (const auto& [method, word] :
       {std::pair{trace::CureMethod::kClamp, "(clamp)"}, std::pair{trace::CureMethod::kQuiesce, "(quiesce)"}}) {
    PoolTrace scene({});
    scene.cure(method, trace::CureResult::kRefusedByRuntime, false);
    scene.touch(4);
    const auto findings = diagnose(read_model(scene.trace));
    ASSERT_EQ(findings.size(), 1U);
    std::string text;
    for (const std::string& sentence : findings[0].chain) text += sentence;
    for (const std::string_view other : {"(clamp)", "(quiesce)"}) {
      EXPECT_EQ(text.find(other) != std::string::npos, other == word) << text;
    }
  }
}

TEST(ForkInsideParallelRegion, ReplacesTheLostPool) {
  PoolTrace scene({.flags = trace::kInParallel});
  scene.cure(trace::CureMethod::kRebuild, trace::CureResult::kRefusedInRegion, false);
  scene.touch(4);
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "fork-inside-parallel-region");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  for (const Fix& fix : findings[0].fixes) EXPECT_FALSE(fix.verified);
}

TEST(ForkInsideParallelRegion, IsFoundByTheProofIfTheChildHasNoTouch) {
  PoolTrace scene({.flags = trace::kInParallel});
  model::Model model = read_model(scene.trace);
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);  // there is no second finding lost-wakeup
  EXPECT_EQ(findings[0].rule, "fork-inside-parallel-region");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
}

TEST(ForkInsideParallelRegion, CrashesUnderLibomp) {
  PoolTrace scene({.kind = trace::RuntimeKind::kLibomp, .flags = trace::kInParallel | trace::kRebuildsItself});
  model::Model model = read_model(scene.trace);
  for (const int signal : {SIGSEGV, SIGABRT}) {
    model.processes[1].exit_status = signal;
    const auto findings = diagnose(model);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].rule, "fork-inside-parallel-region");
    EXPECT_EQ(findings[0].outcome, Outcome::kError);
    const char* const name = signal == SIGSEGV ? "died of SIGSEGV" : "died of SIGABRT";
    EXPECT_NE(findings[0].summary.find(name), std::string::npos) << findings[0].summary;
  }
  model.processes[1].exit_status = SIGTERM;
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[1].exit_status = 0;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(LostOpenmpPool, TheEndOfANestedRegionIsNotTheEndOfTheOuterRegion) {
  PoolTrace scene({});
  scene.touch(3);
  scene.end(scene.touch(2));
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lost-openmp-pool");
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
}

TEST(LostOpenmpPool, NestedOpenRegionsGiveOneFinding) {
  PoolTrace scene({});
  scene.touch(3);
  scene.touch(2);
  EXPECT_EQ(diagnose(read_model(scene.trace)).size(), 1U);
}

}  // namespace
}  // namespace forksight
