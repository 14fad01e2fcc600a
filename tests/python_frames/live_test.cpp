// Compares the stacks read from each interpreter of this machine with what the interpreter reports about itself.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "image/core.hpp"
#include "image/live.hpp"
#include "image/stacks.hpp"
#include "inspect/python/python_frames.hpp"
#include "python_process.hpp"
#include "support/core_writer.hpp"

namespace forksight::inspect {
namespace {

using test::PythonProcess;
using test::ToldFrame;
using test::ToldThread;

constexpr std::size_t kMostFrames = 128;

struct Seen {
  std::vector<PythonThread> threads;
  std::vector<std::string> limits;
};

Seen look_at(const image::Image& image) {
  EXPECT_TRUE(is_python(image));
  image::Stacks stacks(image);
  Seen seen;
  seen.threads = read_python_threads(image, stacks.symbols(), seen.limits);
  return seen;
}

Seen look_at(pid_t pid, bool stop) {
  const auto image = image::open_live(pid, {stop, nullptr});
  if (!image) throw std::runtime_error(image.error());
  return look_at(image.value());
}

std::vector<ToldFrame> frames_of(const PythonThread& thread) {
  std::vector<ToldFrame> frames;
  for (const model::Frame& frame : thread.stack.frames) {
    EXPECT_TRUE(frame.python);
    frames.push_back({frame.function, frame.file, frame.line});
  }
  return frames;
}

class PythonFrames : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    interpreters_ = test::find_interpreters(GetParam());
    if (interpreters_.empty()) GTEST_SKIP() << "no CPython 3." << GetParam() << " here";
  }

  static const PythonThread& thread_of(const Seen& seen, const ToldThread& told) {
    const auto found = std::ranges::find(seen.threads, told.pointer, &PythonThread::pointer);
    if (found == seen.threads.end()) throw std::runtime_error("no thread " + told.name);
    return *found;
  }

  static void compare(const Seen& seen, const PythonProcess& process) {
    EXPECT_TRUE(seen.limits.empty()) << seen.limits.front();
    ASSERT_EQ(seen.threads.size(), process.told().size());
    for (const ToldThread& told : process.told()) {
      SCOPED_TRACE(told.name);
      const PythonThread& thread = thread_of(seen, told);
      auto expected = told.frames;
      EXPECT_EQ(thread.stack.cut, expected.size() > kMostFrames);
      if (expected.size() > kMostFrames) expected.resize(kMostFrames);
      const auto frames = frames_of(thread);
      ASSERT_EQ(frames.size(), expected.size());
      for (std::size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(frames[i].function, expected[i].function) << i;
        EXPECT_EQ(frames[i].file, expected[i].file) << i;
        EXPECT_EQ(frames[i].line, expected[i].line) << i << " " << frames[i].function;
      }
    }
  }

  std::vector<std::string> interpreters_;
};

TEST_P(PythonFrames, AreThoseThatPythonReports) {
  for (const std::string& interpreter : interpreters_) {
    SCOPED_TRACE(interpreter);
    const PythonProcess process(interpreter, "read");
    ASSERT_FALSE(process.told().empty());
    for (const bool stop : {true, false}) {
      const Seen seen = look_at(process.pid(), stop);
      compare(seen, process);
      for (const ToldThread& told : process.told()) {
        EXPECT_EQ(thread_of(seen, told).tid, told.tid) << told.name << (stop ? "" : ", without a stop");
        EXPECT_FALSE(thread_of(seen, told).holds_gil);
      }
      EXPECT_EQ(seen.threads.front().tid, process.pid());
    }
  }
}

TEST_P(PythonFrames, NameTheLocalsOfTheInnermost) {
  for (const std::string& interpreter : interpreters_) {
    SCOPED_TRACE(interpreter);
    const PythonProcess process(interpreter, "read");
    ASSERT_FALSE(process.told().empty());
    const Seen seen = look_at(process.pid(), true);
    const auto locals = [&](const char* name) {
      return thread_of(seen, *std::ranges::find(process.told(), name, &ToldThread::name)).locals;
    };
    EXPECT_EQ(locals("nested"), (std::vector<std::string>{"depth", "label", "lock", "total"}));
    EXPECT_EQ(locals("latin"), (std::vector<std::string>{"ä"}));
    EXPECT_EQ(locals("bmp"), std::vector<std::string>{});
  }
}

TEST_P(PythonFrames, NameTheHolderOfTheGil) {
  for (const std::string& interpreter : interpreters_) {
    SCOPED_TRACE(interpreter);
    const PythonProcess process(interpreter, "gil");
    ASSERT_FALSE(process.told().empty());
    const Seen seen = look_at(process.pid(), true);
    compare(seen, process);
    for (const ToldThread& told : process.told()) EXPECT_EQ(thread_of(seen, told).holds_gil, told.name == "main");
  }
}

TEST_P(PythonFrames, OfAForkedChildAreItsOwn) {
  for (const std::string& interpreter : interpreters_) {
    SCOPED_TRACE(interpreter);
    const PythonProcess process(interpreter, "fork");
    ASSERT_EQ(process.told().size(), 1U);
    for (const bool stop : {true, false}) {
      const Seen seen = look_at(process.pid(), stop);
      compare(seen, process);
      EXPECT_EQ(seen.threads.front().tid, process.pid());
    }
  }
}

TEST_P(PythonFrames, OfLostThreadsRemainAfterAForkByCCode) {
  for (const std::string& interpreter : interpreters_) {
    SCOPED_TRACE(interpreter);
    const PythonProcess process(interpreter, "c-fork");
    ASSERT_GT(process.told().size(), 1U);
    const Seen seen = look_at(process.pid(), true);
    compare(seen, process);
    for (const ToldThread& told : process.told())
      EXPECT_EQ(thread_of(seen, told).tid, told.name == "main" ? process.pid() : 0) << told.name;
  }
}

TEST_P(PythonFrames, OfACoreAreThoseOfTheProcess) {
  for (const std::string& interpreter : interpreters_) {
    SCOPED_TRACE(interpreter);
    const PythonProcess process(interpreter, "read");
    ASSERT_FALSE(process.told().empty());
    const auto live = image::open_live(process.pid());
    ASSERT_TRUE(live) << live.error();
    const int fd = memfd_create("core", MFD_CLOEXEC);
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    // Mappings up to this size are in the core as a whole. The heap is smaller than this, and the threads' stacks are
    // larger.
    test::write_file(path, test::make_core(live.value(), {.whole_up_to = 32U << 20U}));
    const auto core = image::open_core(path);
    ASSERT_TRUE(core) << core.error();
    const Seen seen = look_at(core.value());
    close(fd);
    compare(seen, process);
    for (const ToldThread& told : process.told()) EXPECT_EQ(thread_of(seen, told).tid, told.tid) << told.name;
  }
}

TEST_P(PythonFrames, AreReadWhileAThreadRuns) {
  for (const std::string& interpreter : interpreters_) {
    SCOPED_TRACE(interpreter);
    const PythonProcess process(interpreter, "busy");
    ASSERT_FALSE(process.told().empty());
    const auto image = image::open_live(process.pid(), {false, nullptr});
    ASSERT_TRUE(image) << image.error();
    image::Stacks stacks(image.value());
    Seen seen;
    const auto python = find_python(image.value(), stacks.symbols(), seen.limits);
    ASSERT_TRUE(python);
    for (int round = 0; round < 100; ++round) {
      seen.threads = read_python_threads(image.value(), *python, seen.limits);
      std::erase_if(seen.threads, [&](const PythonThread& thread) {
        return std::ranges::find(process.told(), thread.pointer, &ToldThread::pointer) == process.told().end();
      });
      compare(seen, process);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CPython, PythonFrames, testing::Range(kFirstPythonMinor, kLastPythonMinor + 1),
                         [](const auto& test) { return "3_" + std::to_string(test.param); });

}  // namespace
}  // namespace forksight::inspect
