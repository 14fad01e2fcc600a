// Parses the text that CPython's function for dumping stacks writes in versions 3.8, 3.11 and 3.14, and texts that no
// version writes.
#include "collect/python_text.hpp"

#include <gtest/gtest.h>

#include "model/python_frames.hpp"
#include "support/scenes.hpp"

namespace forksight::collect {
namespace {

constexpr std::uint64_t kWriter = 0x7f00'0000'1000;

TEST(PythonText, HasThreadsAndTheirFrames) {
  const auto threads = parse_python_stacks(
      "Stack (most recent call first):\n"
      "  File \"/app/train.py\", line 50 in main\n"
      "  File \"/app/train.py\", line 90 in <module>\n"
      "Thread 0x00007f0000002000 (most recent call first):\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 324 in wait\n"
      "  ...\n"
      "\n"
      "Current thread 0x00007f0000001000 (most recent call first):\n"
      "  File \"/app/other.py\", line 1 in twice\n",
      kWriter);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].pointer, kWriter);
  ASSERT_EQ(threads[0].stack.frames.size(), 2U);
  EXPECT_EQ(threads[0].stack.frames[0].file, "/app/train.py");
  EXPECT_EQ(threads[0].stack.frames[0].line, 50);
  EXPECT_EQ(threads[0].stack.frames[0].function, "main");
  EXPECT_TRUE(threads[0].stack.frames[0].python);
  EXPECT_FALSE(threads[0].stack.cut);
  EXPECT_EQ(threads[1].pointer, 0x7f00'0000'2000U);
  EXPECT_TRUE(threads[1].stack.cut);
}

TEST(PythonText, MayNameThreadsAndLackLines) {
  const auto threads = parse_python_stacks(
      "Thread 0x00007f0000002000 [loader 1] (most recent call first):\n"
      "  File \"???\", line ??? in ???\n"
      "  File \"a\", line 3 in b.py\", line 4 in f in g\n",
      kWriter);
  ASSERT_EQ(threads.size(), 1U);
  ASSERT_EQ(threads[0].stack.frames.size(), 2U);
  EXPECT_EQ(threads[0].stack.frames[0].file, "");
  EXPECT_EQ(threads[0].stack.frames[0].line, 0);
  EXPECT_EQ(threads[0].stack.frames[1].file, "a\", line 3 in b.py");
  EXPECT_EQ(threads[0].stack.frames[1].line, 4);
  EXPECT_EQ(threads[0].stack.frames[1].function, "f in g");
}

TEST(PythonText, GivesNoThreadsIfItIsMalformed) {
  for (const char* const text :
       {"", "\n\n", "  File \"x\", line 1 in f\n", "Thread zzz (most recent call first):\n  File \"x\", line 1 in f\n",
        "Thread 0x (most recent call first):\n  File \"x\", line 1 in f\n", "Stack (most recent call first):",
        "Stack (most recent call first):\n  File \"", "Stack (most recent call first):\n  File \", line \n",
        "Stack (most recent call first):\n<no Python frame>\n"}) {
    EXPECT_TRUE(parse_python_stacks(text, kWriter).empty()) << text;
  }
  const auto odd =
      parse_python_stacks("Stack (most recent call first):\n  File \"x\", line 99999999999999 in f\n", kWriter);
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_EQ(odd[0].stack.frames[0].line, 0);
}

TEST(PythonText, IsBounded) {
  std::string text;
  for (int thread = 0; thread < 1000; ++thread) {
    text += "Thread 0x" + std::to_string(thread + 1) + " (most recent call first):\n";
    text += "  File \"x\", line 1 in f\n";
  }
  EXPECT_EQ(parse_python_stacks(text, kWriter).size(), 256U);
  text = "Stack (most recent call first):\n";
  for (int frame = 0; frame < 1000; ++frame) text += "  File \"x\", line 1 in f\n";
  EXPECT_EQ(parse_python_stacks(text, kWriter).at(0).stack.frames.size(), 128U);
}

TEST(PythonText, IsInsertedAtTheFramesOfTheInterpreter) {
  const auto python =
      parse_python_stacks("Stack (most recent call first):\n  File \"/app/a.py\", line 7 in f\n", kWriter);
  const auto spliced = [&](std::initializer_list<const char*> frames) {
    model::Stack stack = test::make_stack(frames);
    model::splice_python(stack, python.at(0).stack);
    std::string names;
    for (const model::Frame& frame : stack.frames) names += frame.function + " ";
    return names;
  };
  EXPECT_EQ(spliced({"sem_wait libc.so.6", "PyThread_acquire_lock_timed python3.11",
                     "_PyEval_EvalFrameDefault python3.11", "main python3.11", "__libc_start_main libc.so.6"}),
            "sem_wait PyThread_acquire_lock_timed f _PyEval_EvalFrameDefault main __libc_start_main ");
  EXPECT_EQ(spliced({"GOMP_parallel libgomp.so.1", "dot blas.c:3", "?? libpython3.11.so.1.0", "main app.c:5"}),
            "GOMP_parallel dot f ?? main ");
  EXPECT_EQ(spliced({"work app.c:3"}), "work f ");
  EXPECT_EQ(spliced({}), "f ");
}

}  // namespace
}  // namespace forksight::collect
