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
  finding.stack.frames = {{"read_cache", "/src/app.c", 31, "/bin/app", 0x10}};
  finding.culprit.name = "the mutex at 0x5581aa0";
  finding.culprit.holder = Holder{10, 11, "worker", "", "worker_main"};
  finding.fork = ForkSite{};
  return finding;
}

TEST(Agree, NumbersOfOneRunDoNotCount) {
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
  EXPECT_THAT(compare_views({made()}, {why}), IsEmpty()) << "a closer cause";
}

TEST(Agree, WhatRunLacksIsTold) {
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
  run.rule = "lost-wakeup";
  run.cause = Certainty::kPossible;
  EXPECT_THAT(compare_views({run}, {made()}), ElementsAre(HasSubstr("why says it, run does not")));
  EXPECT_THAT(compare_views({}, {made()}), ElementsAre(HasSubstr("why says it, run does not")));
}

}  // namespace
}  // namespace forksight::suite
