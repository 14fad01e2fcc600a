// Tests that the unwinder reconstructs the stack at which a lock was taken. The functions that took the lock have returned,
// and other functions have overwritten their frames.
#include <gtest/gtest.h>

#include "dump.hpp"

namespace forksight::symbols {
namespace {

struct FrozenFrame {
  std::string function;
  std::string mark;  // "" if the line cannot be known
};

class Frozen : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    dump_ = run_fixture(GetParam());
    symbolizer_ = std::make_unique<Symbolizer>(dump_.modules);
  }

  // Compares only functions of the fixture's own files. The compiler may inline those of the standard library.
  void expect(const std::string& label, const std::vector<FrozenFrame>& frames) {
    const model::Stack stack = symbolizer_->unwind(dump_.sample(label));
    SCOPED_TRACE(label + "\n" + describe(stack));
    EXPECT_FALSE(stack.cut);
    ASSERT_FALSE(stack.frames.empty());
    EXPECT_FALSE(stack.frames.front().approximate);
    EXPECT_EQ(stack.frames.back().function, "clone3");
    std::vector<model::Frame> own;
    for (const model::Frame& frame : stack.frames) {
      if (frame.file.starts_with(SYMBOLS_SOURCES)) own.push_back(frame);
    }
    ASSERT_EQ(own.size(), frames.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i].function, frames[i].function);
      EXPECT_EQ(own[i].line, frames[i].mark.empty() ? 0 : find_mark(frames[i].mark).line) << frames[i].mark;
    }
  }

  bool is_optimised() const { return GetParam().find("O0") == std::string::npos; }

  Dump dump_;
  std::unique_ptr<Symbolizer> symbolizer_;
};

const std::vector<FrozenFrame> kLockFrames = {{"app::Mutex::native_lock", "native-lock"},
                                              {"app::Mutex::lock", "mutex-lock"}};

std::vector<FrozenFrame> with_lock_frames(std::vector<FrozenFrame> outer) {
  outer.insert(outer.begin(), kLockFrames.begin(), kLockFrames.end());
  return outer;
}

TEST_P(Frozen, PutsTheGuardsFramesBack) {
  expect("guard", with_lock_frames({{"app::holder", "holder-lock"}, {"app::frozen_thread", "thread-holder"}}));
}

TEST_P(Frozen, PutsAWrapperBack) {
  expect("acquire", with_lock_frames({{"app::acquire", "acquire-lock"},
                                      {"app::holds_by_acquire", "acquire-call"},
                                      {"app::frozen_thread", "thread-acquire"}}));
}

TEST_P(Frozen, IsRightAfterTheThreadTookAnotherLock) {
  expect("nested", with_lock_frames({{"app::holds_while_others_lock", "nested-lock"},
                                     {"app::frozen_thread", "thread-nested"}}));
}

TEST_P(Frozen, FindsTheLockingFunctionByItsDistanceOnTheStack) {
  expect("deep", with_lock_frames({{"app::acquire", "acquire-lock"},
                                   {"app::takes_deep_down", "deep-acquire"},
                                   {"app::holds_deep_lock", "deep-call"},
                                   {"app::frozen_thread", "thread-deep"}}));
}

TEST_P(Frozen, GivesNoLineIfTwoLinesArePossible) {
  expect("two", with_lock_frames({{"app::acquire", "acquire-lock"},
                                  {"app::holds_one_of_two", ""},
                                  {"app::frozen_thread", "thread-two"}}));
}

TEST_P(Frozen, GivesNoLineIfALaterCallLooksTheSame) {
  expect("waits", with_lock_frames({{"app::acquire", "acquire-lock"},
                                    {"app::waits_for_second", ""},
                                    {"app::frozen_thread", "thread-waits"}}));
}

// A function that was called through a pointer may be missing from the stack. All frames that the stack has must be right.
TEST_P(Frozen, LeavesOutFramesThatTheCodeDoesNotShow) {
  const std::vector<std::string> truth = {"app::Mutex::native_lock", "app::Mutex::lock",  "app::acquire",
                                          "app::TakesIt::take",      "app::holds_by_pointer", "app::frozen_thread",
                                          "start_thread",            "clone3"};
  const model::Stack stack = symbolizer_->unwind(dump_.sample("pointer"));
  SCOPED_TRACE(describe(stack));
  std::size_t at = 0;
  for (const model::Frame& frame : stack.frames) {
    while (at < truth.size() && truth[at] != frame.function) ++at;
    ASSERT_LT(at, truth.size()) << frame.function;
    if (frame.function == "app::holds_by_pointer" && frame.line != 0) {
      EXPECT_EQ(frame.line, find_mark("strategy-call").line);
    }
  }
  EXPECT_GE(stack.frames.size(), 5U);
}

TEST_P(Frozen, PutsBackAFunctionWhoseCallHasReturned) {
  expect("gone", with_lock_frames({{"app::acquire", "acquire-lock"},
                                   {"app::takes_and_returns", "gone-acquire"},
                                   {"app::gone_thread", "thread-gone"}}));
}

// One of two functions took the lock and returned. The stack does not show which one, so the unwinder names neither.
TEST_P(Frozen, NamesNoFunctionIfTwoFunctionsArePossible) {
  std::vector<FrozenFrame> frames = {{"app::either_thread", ""}};
  if (is_optimised()) frames.insert(frames.begin(), {"app::acquire", "acquire-lock"});
  expect("either", with_lock_frames(frames));
}

// A stack is called frozen if its inner frames may have been overwritten since its registers were recorded. In this
// sample no frame was overwritten. So the unwinder finds the same frames, whether the stack counts as frozen or not.
TEST_P(Frozen, IsExactIfNoFrameWasOverwritten) {
  StackSample sample = dump_.sample("recursion");
  const model::Stack expected = symbolizer_->unwind(sample);
  sample.frozen = true;
  EXPECT_EQ(describe(symbolizer_->unwind(sample)), describe(expected));
}

// In optimised fixtures the lock guard is inlined, and no frame is lost. So these tests use only unoptimised fixtures.
class FrozenUnoptimised : public Frozen {};

TEST_P(FrozenUnoptimised, MarksFramesThatWereNotUnwoundAsApproximate) {
  const model::Stack stack = symbolizer_->unwind(dump_.sample("guard"));
  SCOPED_TRACE(describe(stack));
  for (const model::Frame& frame : stack.frames) {
    if (frame.function == "app::holder" || frame.function == "clone3") {
      EXPECT_TRUE(frame.approximate);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compiled, Frozen, testing::ValuesIn(fixtures_with_debug_information()),
                         [](const auto& test) { return test.param; });

std::vector<std::string> unoptimised_fixtures() {
  std::vector<std::string> fixtures = fixtures_with_debug_information();
  std::erase_if(fixtures, [](const std::string& fixture) { return fixture.find("O0") == std::string::npos; });
  return fixtures;
}
INSTANTIATE_TEST_SUITE_P(Compiled, FrozenUnoptimised, testing::ValuesIn(unoptimised_fixtures()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace forksight::symbols
