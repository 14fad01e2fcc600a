#include "render/stack_rows.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "render/escapes.hpp"
#include "support/scenes.hpp"

namespace forksight::render {
namespace {

std::string rows(const model::Stack& stack, const TextOptions& options = {}) {
  Page page(options);
  add_stack(page, stack, options);
  return page.take();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

model::Frame python_frame(const std::string& function, const std::string& file, int line) {
  model::Frame frame;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  frame.python = true;
  return frame;
}

// The stack of a torch program. The only frame of the program itself is the second outermost frame.
model::Stack torch_stack() {
  model::Stack stack = test::make_stack({"?? libgomp.so.1", "GOMP_parallel libgomp.so.1"});
  for (int i = 0; i < 8; ++i) {
    const model::Stack more = test::make_stack({"at::add libtorch_cpu.so.1.13"});
    stack.frames.push_back(more.frames.front());
  }
  stack.frames.push_back(
      python_frame("_try_get_data", "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py", 1133));
  stack.frames.push_back(python_frame("_launch", "/usr/lib/python3.11/multiprocessing/popen_fork.py", 71));
  stack.frames.push_back(python_frame("main", "/srv/user/dl2.py", 20));
  stack.frames.push_back(test::make_stack({"Py_RunMain python3.11"}).frames.front());
  return stack;
}

TEST(StackRows, ShowTheUsersLineBehindAnyNumberOfLibraryFrames) {
  EXPECT_EQ(rows(torch_stack()),
            "      (12 frames of libtorch_cpu.so.1.13, libgomp.so.1, torch, multiprocessing)\n"
            "      main                              /srv/user/dl2.py:20\n");
}

TEST(StackRows, ShowAllFramesOnRequest) {
  TextOptions options;
  options.full = true;
  options.columns = 200;
  const std::string text = rows(torch_stack(), options);
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), torch_stack().frames.size());
  EXPECT_TRUE(has(text, "Py_RunMain"));
  EXPECT_FALSE(has(text, "frames of"));
}

TEST(StackRows, FoldEachRunInItsPlace) {
  EXPECT_EQ(rows(test::make_stack({"read libc.so.6", "callback app.c:5", "qsort libc.so.6", "sort app.c:9",
                                   "__libc_start_main libc.so.6"})),
            "      (1 frame of libc.so.6)\n"
            "      callback                          /src/app/app.c:5\n"
            "      (1 frame of libc.so.6)\n"
            "      sort                              /src/app/app.c:9\n");
}

TEST(StackRows, ShowOneFrameOfALibraryInsteadOfALineAboutIt) {
  EXPECT_TRUE(has(rows(test::make_stack({"work app.c:5", "dispatch libevent.so.2", "main app.c:9"})), "dispatch "));
}

TEST(StackRows, NameTheFoldedLibrariesWithMostFramesFirst) {
  EXPECT_TRUE(has(rows(test::make_stack({"a liba.so.1", "b libb.so.1", "b libb.so.1", "c libc.so.6", "d libd.so.1",
                                         "e libe.so.1", "main app.c:9"})),
                  "(6 frames of libb.so.1, liba.so.1, libc.so.6, libd.so.1 and 1 more)"));
}

TEST(StackRows, NameTheLibraryOfFramesInItsHeaders) {
  EXPECT_TRUE(has(rows(test::make_stack({"std::mutex::lock std_mutex.h:100", "main app.cpp:9"})),
                  "(1 frame of the C++ library)"));
}

TEST(StackRows, ShowTheInnermostLibraryIfNoFrameIsTheUsers) {
  const std::string libraries = rows(test::make_stack(
      {"futex_wait libc.so.6", "dgemm_ libopenblas.so.0", "solve liblapack.so.3", "clone3 libc.so.6"}));
  EXPECT_EQ(libraries,
            "      (1 frame of libc.so.6)\n"
            "      dgemm_                            libopenblas.so.0+0x1234\n"
            "      solve                             liblapack.so.3+0x1234\n");
  EXPECT_TRUE(has(rows(test::make_stack({"futex_wait libc.so.6", "clone3 libc.so.6"})), "futex_wait"));
}

TEST(StackRows, ShowTheLinesOfPythonIfThereIsNoFrameOfTheUser) {
  model::Stack stack =
      test::make_stack({"sem_wait libc.so.6", "acquire_timed libpython3.11.so.1.0", "_PyEval libpython3.11.so.1.0"});
  stack.frames.push_back(python_frame("wait", "/usr/lib/python3.11/threading.py", 327));
  stack.frames.push_back(python_frame("run", "/usr/lib/python3.11/threading.py", 982));
  stack.frames.push_back(test::make_stack({"start_thread libc.so.6"}).frames.front());
  EXPECT_EQ(rows(stack),
            "      (3 frames of libpython3.11.so.1.0, libc.so.6)\n"
            "      wait                              /usr/lib/python3.11/threading.py:327\n"
            "      run                               /usr/lib/python3.11/threading.py:982\n"
            "      (1 frame of libc.so.6)\n");
}

TEST(StackRows, ShowBothEndsOfARecursion) {
  model::Stack stack = test::make_stack({"leaf app.c:1"});
  for (int i = 0; i < 300; ++i) stack.frames.push_back(test::make_stack({"walk app.c:5"}).frames.front());
  stack.frames.push_back(test::make_stack({"main app.c:9"}).frames.front());
  const std::string text = rows(stack);
  EXPECT_TRUE(has(text, "leaf "));
  EXPECT_TRUE(has(text, "main "));
  EXPECT_TRUE(has(text, "(278 frames of app)")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 25);
}

model::Frame nameless(const std::string& module, std::uint64_t offset) {
  model::Frame frame;
  frame.module = module;
  frame.offset = offset;
  return frame;
}

model::Stack stripped_stack() {
  model::Stack stack = test::make_stack({"futex_wait libc.so.6"});
  for (std::uint64_t i = 0; i < 5; ++i) stack.frames.push_back(nameless("/opt/app/server", 0x1171 + 0x20 * i));
  stack.frames.push_back(nameless("/opt/app/plugin.so", 0x4000));
  stack.frames.push_back(test::make_stack({"main app.c:9"}).frames.front());
  stack.frames.push_back(nameless("/opt/app/server", 0x2000));
  stack.frames.push_back(test::make_stack({"clone3 libc.so.6"}).frames.front());
  return stack;
}

TEST(StackRows, ShowModuleAndOffsetOfFramesWithoutNames) {
  EXPECT_EQ(rows(stripped_stack()),
            "      (1 frame of libc.so.6)\n"
            "      server+0x1171                     (5 frames without names)\n"
            "      plugin.so+0x4000\n"
            "      main                              /src/app/app.c:9\n"
            "      server+0x2000\n");
  TextOptions options;
  options.full = true;
  const std::string full = rows(stripped_stack(), options);
  for (const char* const row : {"server+0x1171\n", "server+0x1191\n", "server+0x11f1\n", "plugin.so+0x4000\n"})
    EXPECT_TRUE(has(full, std::string("\n      ") + row)) << full;
}

// A stripped program may have any number of frames without names. One row stands for all of them.
TEST(StackRows, CountFramesWithoutNamesAsOneRow) {
  model::Stack stack = test::make_stack({"leaf app.c:1"});
  for (int i = 0; i < 300; ++i) stack.frames.push_back(nameless("/opt/app/server", 0x1000));
  stack.frames.push_back(test::make_stack({"main app.c:9"}).frames.front());
  EXPECT_EQ(rows(stack),
            "      leaf                              /src/app/app.c:1\n"
            "      server+0x1000                     (300 frames without names)\n"
            "      main                              /src/app/app.c:9\n");
}

TEST(StackRows, FoldFramesWithoutNamesOfLibraries) {
  model::Stack stack = test::make_stack({"futex_wait libc.so.6"});
  for (int i = 0; i < 20; ++i) stack.frames.push_back(nameless("/usr/lib/liba.so.1", 0x1000));
  stack.frames.push_back(test::make_stack({"run libb.so.1"}).frames.front());
  EXPECT_EQ(rows(stack),
            "      (1 frame of libc.so.6)\n"
            "      liba.so.1+0x1000                  (20 frames without names)\n"
            "      run                               libb.so.1+0x1234\n");
}

TEST(StackRows, SayWhatIsKnownAboutEachFrame) {
  model::Stack stack = test::make_stack({"work app.c:5"});
  stack.frames.push_back({});  // code that a program has generated
  stack.frames.push_back(nameless("/opt/app/server", 0x1000));
  stack.frames.back().file = "/src/app/start.S";
  stack.frames.back().line = 7;
  stack.frames.push_back(nameless("/opt/app/server", 0x3000));
  stack.frames.back().approximate = true;
  stack.frames.push_back(test::make_stack({"main app.c:9"}).frames.front());
  for (const bool is_full : {false, true}) {
    TextOptions options;
    options.full = is_full;
    const std::string text = rows(stack, options);
    EXPECT_FALSE(has(text, "??")) << text;
    EXPECT_TRUE(has(text, "unknown code")) << text;
    EXPECT_TRUE(has(text, "      server+0x1000                     /src/app/start.S:7\n")) << text;
    EXPECT_TRUE(has(text, "      server+0x3000                     (approximate)\n")) << text;
  }
}

TEST(StackRows, ShowOneFunctionOfAnInterpreter) {
  const model::Stack stack =
      test::make_stack({"PyThread_start_new_thread libpython3.11.so.1.0", "cfunction_call libpython3.11.so.1.0",
                        "_PyEval_EvalFrame libpython3.11.so.1.0", "Py_RunMain libpython3.11.so.1.0"});
  EXPECT_EQ(rows(stack),
            "      PyThread_start_new_thread         libpython3.11.so.1.0+0x1234\n"
            "      (3 frames of libpython3.11.so.1.0)\n");
}

// A shell's own functions tell only that it waits.
TEST(StackRows, ShowFewFramesOfAShell) {
  model::Stack stack = test::make_stack({"wait4 libc.so.6"});
  for (int i = 0; i < 80; ++i) {
    stack.frames.push_back(test::make_stack({"execute_command libx.so"}).frames.front());
    stack.frames.back().module = "/usr/bin/bash";
  }
  const std::string text = rows(stack);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 8) << text;
  EXPECT_TRUE(has(text, "execute_command                   bash+0x1234\n")) << text;
  EXPECT_TRUE(has(text, "(74 frames of bash)")) << text;
}

TEST(StackRows, LinkToFilesThatExist) {
  std::string folder = (std::filesystem::temp_directory_path() / "forksight-links-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/a b.c";
  std::ofstream(file) << "int x;\n";
  model::Stack stack = test::make_stack({"here app.c:3", "gone app.c:4"});
  stack.frames[0].file = file;
  stack.frames[1].file = folder + "/gone.c";
  TextOptions options;
  EXPECT_FALSE(has(rows(stack, options), "\x1b"));
  options.link_host = "host";
  EXPECT_FALSE(has(rows(stack, options), "\x1b"));
  options.colour = true;
  const std::string text = rows(stack, options);
  EXPECT_TRUE(has(text, "\x1b]8;;file://host" + folder + "/a%20b.c\x1b\\")) << text;
  EXPECT_FALSE(has(text, "file://host" + folder + "/gone.c"));
  EXPECT_TRUE(has(test::without_escapes(text), file + ":3"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forksight::render
