#include "suite/agree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace forksight::suite {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Finding made() {
  Finding finding;
  finding.rule = "orphaned-mutex";
  finding.harm = Certainty::kProven;
  finding.cause = Certainty::kProven;
  finding.thread_name = "child";
  model::Frame& frame = finding.stack.frames.emplace_back();
  frame.function = "read_cache";
  frame.file = "/src/app.c";
  frame.line = 31;
  frame.module = "/bin/app";
  finding.culprit.name = "the mutex at 0x5581aa0";
  finding.culprit.holder = Holder();
  finding.culprit.holder->tid = 11;
  finding.culprit.holder->name = "worker";
  finding.culprit.holder->start_routine = "worker_main";
  finding.fork = ForkSite{};
  return finding;
}

TEST(Agree, NumbersThatDifferBetweenRunsDoNotCount) {
  Finding why = made();
  why.culprit.name = "the mutex at 0x7f10cc";
  why.culprit.holder->tid = 99;
  EXPECT_THAT(compare_views({made()}, {why}), IsEmpty());
}

TEST(Agree, RunMayKnowMore) {
  Finding why = made();
  why.culprit.holder.reset();
  why.cause = Certainty::kLikely;
  EXPECT_THAT(compare_views({made()}, {why}), IsEmpty());
  why.rule = "lost-wakeup";
  EXPECT_THAT(compare_views({made()}, {why}), IsEmpty()) << "one view names a more exact cause";
}

TEST(Agree, WhatRunLacksIsReported) {
  Finding run = made();
  run.stack.frames.clear();
  EXPECT_THAT(compare_views({run}, {made()}), ElementsAre(HasSubstr("read_cache (/src/app.c:31)")));
  run = made();
  run.culprit.holder->start_routine.clear();
  EXPECT_THAT(compare_views({run}, {made()}), ElementsAre(HasSubstr("where its holder started")));
  run = made();
  run.harm = Certainty::kLikely;
  EXPECT_THAT(compare_views({run}, {made()}), ElementsAre(HasSubstr("why says proven, run says likely")));
  run = made();
  run.fingerprint = "00000000000000aa";
  EXPECT_THAT(compare_views({run}, {made()}), ElementsAre(HasSubstr("the fingerprint")));
  run = made();
  run.rule = "lost-wakeup";
  run.cause = Certainty::kPossible;
  EXPECT_THAT(compare_views({run}, {made()}), ElementsAre(HasSubstr("why says it, run does not")));
  EXPECT_THAT(compare_views({}, {made()}), ElementsAre(HasSubstr("why says it, run does not")));
}

TEST(Agree, ACoreShowsTheSameCause) {
  Finding core = made();
  EXPECT_THAT(compare_causes({core}, {made()}), IsEmpty());
  core.fingerprint = "00000000000000aa";
  EXPECT_THAT(compare_causes({core}, {made()}), ElementsAre(HasSubstr("core says 00000000000000aa")));
  EXPECT_THAT(compare_causes({core}, {core, made()}), IsEmpty());
  core.rule = "lost-wakeup";
  EXPECT_THAT(compare_causes({core}, {made()}), IsEmpty()) << "another rule has another cause";
}

}  // namespace
}  // namespace forksight::suite
