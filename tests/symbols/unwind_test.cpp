// Tests the function and line of every frame of every scene, in the fixtures of each compiler and set of options.
#include <gtest/gtest.h>

#include "dump.hpp"

namespace forksight::symbols {
namespace {

struct Expected {
  std::string function;
  std::string mark;
};

struct Scene {
  std::string label;
  std::vector<Expected> frames;  // innermost first; only frames whose source is a file of the fixture
  std::string outermost;         // function at which the thread starts
};

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> kScenes = {
      {"template", {{"app::Cache<long>::get", "cache-get"}, {"main", "main-template"}}, "_start"},
      {"inlined",
       {{"app::innermost_inline", "inline-inner"},
        {"app::outer_inline", "inline-outer"},
        {"app::uses_inlines", "inline-user"},
        {"main", "main-inlines"}},
       "_start"},
      {"recursion",
       {{"app::recurse", "recursion-end"},
        {"app::recurse", "recursion-step"},
        {"app::recurse", "recursion-step"},
        {"app::recurse", "recursion-step"},
        {"main", "main-recursion"}},
       "_start"},
      {"lambda",
       {{"app::runs_lambda::{lambda#1}::operator()", "lambda-body"},
        {"app::runs_lambda", "lambda-call"},
        {"main", "main-lambda"}},
       "_start"},
      {"library",
       {{"app::called_back", "called-back"},
        {"library::visit_inner", "library-inner"},
        {"library::visit", "library-visit"},
        {"main", "main-library"}},
       "_start"},
      {"alloca", {{"app::with_alloca", "alloca-body"}, {"main", "main-alloca"}}, "_start"},
      {"signal", {{"app::on_signal", "handler"}, {"app::interrupted", "raise"}, {"main", "main-signal"}}, "_start"},
      {"fault", {{"app::on_fault", "fault-handler"}, {"app::faults", "fault"}, {"main", "main-fault"}}, "_start"},
      {"noreturn", {{"app::leave_thread", "leave-body"}, {"app::ends_in_noreturn", "leave-call"}}, "clone3"},
  };
  return kScenes;
}

class Unwind : public testing::TestWithParam<std::string> {};

TEST_P(Unwind, FindsEveryFrame) {
  const Dump dump = run_fixture(GetParam());
  Symbolizer symbolizer(dump.modules);
  for (const Scene& scene : scenes()) {
    SCOPED_TRACE(scene.label);
    const model::Stack stack = symbolizer.unwind(dump.sample(scene.label));
    SCOPED_TRACE(describe(stack));
    EXPECT_FALSE(stack.cut);
    ASSERT_FALSE(stack.frames.empty());
    EXPECT_EQ(stack.frames.back().function, scene.outermost);
    std::vector<model::Frame> own;
    for (const model::Frame& frame : stack.frames) {
      EXPECT_FALSE(frame.approximate);
      EXPECT_FALSE(frame.module.empty());
      if (frame.file.starts_with(SYMBOLS_SOURCES)) own.push_back(frame);
    }
    ASSERT_EQ(own.size(), scene.frames.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i].function, scene.frames[i].function);
      const Mark mark = find_mark(scene.frames[i].mark);
      EXPECT_EQ(own[i].file, mark.file);
      EXPECT_EQ(own[i].line, mark.line) << scene.frames[i].mark;
    }
  }
}

TEST_P(Unwind, SaysWhichFramesWereInlined) {
  const Dump dump = run_fixture(GetParam());
  Symbolizer symbolizer(dump.modules);
  const model::Stack stack = symbolizer.unwind(dump.sample("inlined"));
  ASSERT_GE(stack.frames.size(), 4U);
  EXPECT_TRUE(stack.frames[0].inlined);
  EXPECT_TRUE(stack.frames[1].inlined);
  EXPECT_FALSE(stack.frames[2].inlined);
  EXPECT_EQ(stack.frames[0].offset, stack.frames[2].offset);
  EXPECT_EQ(stack.frames[2].module, dump.program);
}

TEST_P(Unwind, ReachesTheStartThroughTheStandardLibrary) {
  const Dump dump = run_fixture(GetParam());
  Symbolizer symbolizer(dump.modules);
  const model::Stack stack = symbolizer.unwind(dump.sample("std-thread"));
  SCOPED_TRACE(describe(stack));
  ASSERT_FALSE(stack.frames.empty());
  EXPECT_EQ(stack.frames.front().line, find_mark("thread-lambda").line);
  EXPECT_EQ(stack.frames.back().function, "clone3");
  EXPECT_FALSE(stack.cut);
}

TEST_P(Unwind, GivesTheSameStackTwice) {
  const Dump dump = run_fixture(GetParam());
  Symbolizer symbolizer(dump.modules);
  for (const auto& [label, recorded] : dump.stacks) {
    EXPECT_EQ(describe(symbolizer.unwind(dump.sample(label))), describe(symbolizer.unwind(dump.sample(label)))) << label;
  }
}

TEST_P(Unwind, MarksAStackAsCutIfItsBytesEnd) {
  const Dump dump = run_fixture(GetParam());
  Symbolizer symbolizer(dump.modules);
  const StackSample whole = dump.sample("recursion");
  const model::Stack complete = symbolizer.unwind(whole);
  for (std::size_t bytes = 0; bytes < 512; bytes += 8) {
    StackSample part = whole;
    part.memory = whole.memory.first(bytes);
    part.cut = true;
    const model::Stack stack = symbolizer.unwind(part);
    ASSERT_FALSE(stack.frames.empty());
    if (stack.frames.size() == complete.frames.size()) break;
    EXPECT_TRUE(stack.cut) << bytes;
    for (std::size_t i = 0; i < stack.frames.size(); ++i) {
      EXPECT_EQ(stack.frames[i].function, complete.frames[i].function) << bytes;
      EXPECT_EQ(stack.frames[i].line, complete.frames[i].line) << bytes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compiled, Unwind, testing::ValuesIn(fixtures_with_debug_information()),
                         [](const auto& test) { return test.param; });

TEST(UnwindStripped, ReachesTheThreadStartWithoutNames) {
  const Dump dump = run_fixture("stripped");
  Symbolizer symbolizer(dump.modules);
  for (const Scene& scene : scenes()) {
    const model::Stack stack = symbolizer.unwind(dump.sample(scene.label));
    SCOPED_TRACE(scene.label + "\n" + describe(stack));
    EXPECT_FALSE(stack.cut);
    ASSERT_FALSE(stack.frames.empty());
    EXPECT_EQ(stack.frames[0].module, dump.program);
    EXPECT_EQ(stack.frames[0].function, "");
    EXPECT_GT(stack.frames[0].offset, 0U);
  }
  // A symbol of the dynamic symbol table gives a name only to addresses inside the symbol.
  const model::Stack stack = symbolizer.unwind(dump.sample("library"));
  SCOPED_TRACE(describe(stack));
  ASSERT_GE(stack.frames.size(), 3U);
  EXPECT_EQ(stack.frames[1].function, "");
  EXPECT_EQ(stack.frames[2].function, "library::visit");
  std::size_t said = 0;
  for (const std::string& limit : symbolizer.limits()) {
    if (limit.starts_with(dump.program + ":")) ++said;
  }
  EXPECT_EQ(said, 1U);
}

}  // namespace
}  // namespace forksight::symbols
