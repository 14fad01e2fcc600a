// Tests that the unwinder finds the line that took a lock of the standard library, after the functions that took it
// have returned.
#include <gtest/gtest.h>

#include "dump.hpp"

namespace forksight::symbols {
namespace {

struct LockScene {
  std::string label;
  std::string function;   // the function that holds the lock
  std::string mark;       // the line where it took the lock
  std::string work_mark;  // the line in locks::work() that called `function`; "" if not tested
};

class Locks : public testing::TestWithParam<std::string> {};

TEST_P(Locks, AreFoundAtTheLineThatTookThem) {
  const Dump dump = run_fixture(GetParam(), "locks");
  Symbolizer symbolizer(dump.modules);
  const std::vector<LockScene> scenes = {
      {"unique", "locks::Cache::refresh", "unique-lock", "work-unique"},
      {"scoped", "locks::takes_both", "scoped-lock", "work-scoped"},
      {"bare", "locks::takes_bare", "bare-lock", "work-bare"},
      {"recursive", "locks::takes_again", "recursive-lock", "work-recursive"},
      {"template", "locks::with_lock", "template-lock", ""},
      {"virtual", "locks::Waits::run", "virtual-lock", "work-virtual"},
  };
  for (const LockScene& scene : scenes) {
    const model::Stack stack = symbolizer.unwind(dump.sample(scene.label));
    SCOPED_TRACE(scene.label + "\n" + describe(stack));
    EXPECT_FALSE(stack.cut);
    ASSERT_FALSE(stack.frames.empty());
    EXPECT_EQ(stack.frames.back().function, "clone3");
    std::vector<model::Frame> own;
    for (const model::Frame& frame : stack.frames) {
      if (frame.file.starts_with(SYMBOLS_SOURCES)) own.push_back(frame);
    }
    ASSERT_GE(own.size(), 2U);
    EXPECT_EQ(own[0].function.substr(0, own[0].function.find('<')), scene.function);
    EXPECT_EQ(own[0].line, find_mark(scene.mark).line);
    EXPECT_EQ(own[1].function, "locks::work");
    if (!scene.work_mark.empty()) {
      EXPECT_EQ(own[1].line, find_mark(scene.work_mark).line);
    }
    for (const model::Frame& frame : stack.frames) {
      EXPECT_NE(frame.function, "locks::Cache::fill");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compiled, Locks, testing::ValuesIn(fixtures_with_debug_information()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace forksight::symbols
