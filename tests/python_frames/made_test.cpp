// Tests the reader on made-up memory with the layout of each version. The version need not be installed.
#include <gtest/gtest.h>

#include "inspect/python/python_frames.hpp"
#include "made_python.hpp"

namespace forksight::inspect {
namespace {

using test::MadePython;

constexpr std::size_t kMostFramesOfThread = 128;

// Returns a line table in which all instructions belong to one line, which is `delta` lines after the first line.
std::vector<std::uint8_t> one_line(PythonLines kind, std::uint8_t delta) {
  switch (kind) {
    case PythonLines::kDeltas: return {0, delta};
    case PythonLines::kRanges: return {254, delta};
    default: break;
  }
  std::vector<std::uint8_t> table;
  for (int i = 0; i < 16; ++i) {
    table.push_back(0x80 | 13U << 3U | 7U);
    table.push_back(i == 0 ? static_cast<std::uint8_t>(delta * 2) : 0);
  }
  return table;
}

class MadeFrames : public testing::TestWithParam<test::MadeVersion> {
 protected:
  MadeFrames() : layout_(MadePython::layout_of(GetParam())), python_(layout_) {}

  std::uint64_t code(const std::u32string& name, const std::u32string& file = U"/app/main.py",
                     const std::vector<std::u32string>& locals = {}) {
    return python_.code(name, file, 10, one_line(layout_.lines, 5), locals);
  }
  std::vector<PythonThread> read() { return read(python_.image()); }
  std::vector<PythonThread> read(const image::Image& image) {
    limits_.clear();
    return read_python_threads(image, python_.interpreter(), limits_);
  }
  static std::string text(const PythonThread& thread) {
    std::string text;
    for (const model::Frame& frame : thread.stack.frames)
      text += frame.function + " " + frame.file + ":" + std::to_string(frame.line) + "\n";
    return text + (thread.stack.cut ? "..." : "");
  }

  PythonLayout layout_;
  MadePython python_;
  std::vector<std::string> limits_;
};

TEST_P(MadeFrames, AreReadOldestThreadFirst) {
  const std::uint64_t inner = code(U"inner", U"/app/main.py", {U"self", U"größe"});
  const std::uint64_t outer = code(U"outer");
  python_.thread(0x7000, 100, python_.frames({{inner, 4}, {outer, -2}})[0]);
  const std::uint64_t second = python_.thread(0x8000, 101, python_.frames({{outer, 0}})[0]);
  python_.give_gil(second);
  image::Image image = python_.image();
  image.threads.resize(2);
  image.threads[0].tid = 100;
  image.threads[0].fs_base = 0x7000;
  image.threads[1].tid = 101;
  image.threads[1].fs_base = 0x8000;
  const auto threads = read(image);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(text(threads[0]), "inner /app/main.py:15\nouter /app/main.py:10\n");
  EXPECT_EQ(text(threads[1]), "outer /app/main.py:15\n");
  EXPECT_EQ(threads[0].pointer, 0x7000U);
  EXPECT_EQ(threads[0].tid, 100);
  EXPECT_EQ(threads[1].tid, 101);
  EXPECT_EQ(threads[0].locals, (std::vector<std::string>{"self", "größe"}));
  EXPECT_FALSE(threads[0].holds_gil);
  EXPECT_TRUE(threads[1].holds_gil);
  EXPECT_TRUE(limits_.empty());
}

TEST_P(MadeFrames, NamesAreOfAnyWidth) {
  const std::u32string half{U'x', char32_t{0xDC80}, U'y'};
  python_.thread(0x7000, 100,
                 python_.frames({{code(U"größe", U"/模块.py"), 0}, {code(U"f", U"/😀.py"), 0}, {code(half), 0}})[0]);
  const auto threads = read();
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(text(threads[0]), "größe /模块.py:15\nf /😀.py:15\nx\xEF\xBF\xBDy /app/main.py:15\n");
}

TEST_P(MadeFrames, LongNamesAreCut) {
  python_.thread(0x7000, 100,
                 python_.frames({{code(std::u32string(10'000, U'n'), std::u32string(100'000, U'ä')), 0}})[0]);
  const auto threads = read();
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].stack.frames[0].function.size(), 256U);
  EXPECT_EQ(threads[0].stack.frames[0].file.size(), 2U * 4096);
}

class MadeFramesSince312 : public MadeFrames {};

TEST_P(MadeFramesSince312, BetweenCAndPythonAreLeftOut) {
  python_.thread(0x7000, 100, python_.frames({{0, 0, 3}, {code(U"f"), 0}, {0, 0, 3}, {code(U"g"), 0}, {0, 0, 3}})[0]);
  EXPECT_EQ(text(read().at(0)), "f /app/main.py:15\ng /app/main.py:15\n");
}

TEST_P(MadeFrames, OfACircleAreCut) {
  const auto frames = python_.frames({{code(U"f"), 0}, {code(U"g"), 0}});
  python_.memory().put(frames[1] + layout_.frame_back, frames[0]);
  python_.thread(0x7000, 100, frames[0]);
  const auto threads = read();
  EXPECT_TRUE(threads.at(0).stack.cut);
  EXPECT_EQ(threads[0].stack.frames.size(), 2U);
  ASSERT_EQ(limits_.size(), 1U);
  EXPECT_NE(limits_[0].find("1 thread form a ring"), std::string::npos) << limits_[0];
}

TEST_P(MadeFrames, OfThreadsInACircleAreReadOnce) {
  const auto frames = python_.frames({{code(U"f"), 0}});
  const std::uint64_t first = python_.thread(0x7000, 100, frames[0]);
  const std::uint64_t second = python_.thread(0x8000, 101, 0);
  python_.memory().put(first + layout_.thread_next, second);
  python_.memory().put(python_.first_interpreter() + layout_.interpreter_next, python_.first_interpreter());
  EXPECT_EQ(read().size(), 2U);
  ASSERT_EQ(limits_.size(), 1U);
  EXPECT_NE(limits_[0].find("forms a ring"), std::string::npos) << limits_[0];
}

TEST_P(MadeFrames, OfStatesInACircleAreReadOnce) {
  const std::uint64_t only = python_.thread(0x7000, 100, python_.frames({{code(U"f"), 0}})[0]);
  python_.memory().put(only + layout_.thread_next, only);
  EXPECT_EQ(read().size(), 1U);
  ASSERT_EQ(limits_.size(), 1U);
  EXPECT_NE(limits_[0].find("forms a ring"), std::string::npos) << limits_[0];
}

// In a deep recursion, many frames have the same code, but each frame has its own address.
TEST_P(MadeFrames, OfARecursionAreNoRing) {
  python_.thread(0x7000, 100, python_.frames(std::vector<test::MadeFrame>(100, {code(U"f"), 0}))[0]);
  EXPECT_EQ(read().at(0).stack.frames.size(), 100U);
  EXPECT_TRUE(limits_.empty());
}

TEST_P(MadeFrames, EndWhereTheChainBreaks) {
  const auto frames = python_.frames({{code(U"f"), 0}, {code(U"g"), 0}});
  python_.memory().put(frames[0] + layout_.frame_back, std::uint64_t{0xdead0000});
  python_.thread(0x7000, 100, frames[0]);
  EXPECT_EQ(text(read().at(0)), "f /app/main.py:15\n...");
}

TEST_P(MadeFrames, OfAnObjectThatIsNoCodeAreRefused) {
  const std::uint64_t code_object = code(U"f");
  python_.memory().put(code_object + layout_.object_type, python_.string(U"str"));
  python_.thread(0x7000, 100, python_.frames({{code_object, 0}})[0]);
  EXPECT_FALSE(read().at(0).stack.known());
  ASSERT_EQ(limits_.size(), 1U);
  EXPECT_EQ(limits_[0],
            "process 100: its Python stacks cannot be read: its memory is incomplete, or does not have the layout of "
            "CPython 3." +
                std::to_string(GetParam().minor));
}

TEST_P(MadeFrames, OfAThreadOfAnotherInterpreterAreRefused) {
  const std::uint64_t thread = python_.thread(0x7000, 100, python_.frames({{code(U"f"), 0}})[0]);
  python_.memory().put(thread + layout_.thread_interpreter, thread);
  EXPECT_TRUE(read().empty());
  EXPECT_EQ(limits_.size(), 1U);
}

TEST_P(MadeFrames, OfANewThreadStateAreThoseOfTheCreatingThread) {
  python_.thread(0x7000, 100, python_.frames({{code(U"start"), 0}})[0]);
  python_.thread(0x7000, 100, 0);
  image::Image image = python_.image();
  image.threads.emplace_back().tid = 100;
  image.threads[0].fs_base = 0x7000;
  const auto threads = read(image);
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(text(threads[0]), "start /app/main.py:15\n");
  EXPECT_EQ(threads[0].tid, 100);
}

TEST_P(MadeFrames, MissingMemoryIsReported) {
  image::Image image = python_.image();
  image.memory = std::make_shared<test::SparseMemory>();
  EXPECT_TRUE(read(image).empty());
  EXPECT_EQ(limits_.size(), 1U);
}

TEST_P(MadeFrames, AreNoneBeforePythonStarts) {
  python_.memory().put(MadePython::kRuntime + layout_.interpreters, std::uint64_t{0});
  EXPECT_TRUE(read().empty());
  EXPECT_TRUE(limits_.empty());
}

// Only builds without the GIL have copies of instructions.
class MadeFramesOfCopies : public MadeFrames {};

TEST_P(MadeFramesOfCopies, HaveTheLinesOfTheCode) {
  // The distance from the code to the copy is larger than all offsets in the line table. So the reader must subtract
  // the address of the copy.
  const std::uint64_t in_copy = code(U"f");
  python_.thread(0x7000, 100, python_.frames({{in_copy, 4, 0, 1}, {in_copy, 4, 0, 0}})[0]);
  EXPECT_EQ(text(read().at(0)), "f /app/main.py:15\nf /app/main.py:15\n");
  // The code has no copy with this index.
  python_.thread(0x8000, 101, python_.frames({{code(U"g"), 4}})[0]);
  const auto frames = python_.frames({{code(U"h"), 4}});
  python_.memory().put(frames[0] + layout_.frame_copy_index, std::int32_t{-1});
  python_.thread(0x9000, 102, frames[0]);
  EXPECT_EQ(text(read().at(2)), "h /app/main.py:15\n");
}

INSTANTIATE_TEST_SUITE_P(CPython, MadeFrames, testing::ValuesIn(test::made_versions()),
                         [](const auto& test) { return test::name_of(test.param); });

std::vector<test::MadeVersion> versions(bool (*is_meant)(const test::MadeVersion& version)) {
  std::vector<test::MadeVersion> all = test::made_versions();
  std::erase_if(all, [&](const test::MadeVersion& version) { return !is_meant(version); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(CPython, MadeFramesSince312,
                         testing::ValuesIn(versions([](const auto& version) { return version.minor >= 12; })),
                         [](const auto& test) { return test::name_of(test.param); });
INSTANTIATE_TEST_SUITE_P(CPython, MadeFramesOfCopies,
                         testing::ValuesIn(versions([](const auto& version) { return version.is_free_threaded; })),
                         [](const auto& test) { return test::name_of(test.param); });

TEST(PythonVersion, IsInNamesOfFiles) {
  EXPECT_EQ(python_minor_of_file("/usr/lib/libpython3.10.so.1.0"), 10);
  EXPECT_EQ(python_minor_of_file("/opt/conda/bin/python3.9"), 9);
  EXPECT_EQ(python_minor_of_file("/usr/bin/python3.11-dbg"), 11);
  EXPECT_EQ(python_minor_of_file("/x/_json.cpython-312-x86_64-linux-gnu.so"), 12);
  EXPECT_EQ(python_minor_of_file("/usr/bin/python3"), std::nullopt);
  EXPECT_EQ(python_minor_of_file("/usr/lib/libpython3.so"), std::nullopt);
  EXPECT_EQ(python_minor_of_file("/usr/lib/libpython3.123456.so"), std::nullopt);
  EXPECT_EQ(python_minor_of_file("/usr/lib/libc.so.6"), std::nullopt);
  EXPECT_EQ(python_minor_of_file(""), std::nullopt);
}

TEST(PythonVersion, IsOfAProcessThatRunsPython) {
  image::Image image;
  EXPECT_FALSE(is_python(image));
  for (const char* const exe : {"/usr/bin/python3.11", "/usr/bin/python"}) {
    image.exe = exe;
    EXPECT_TRUE(is_python(image)) << exe;
  }
  for (const char* const exe : {"/usr/bin/pypy3.9", "/usr/bin/python2.7", "/usr/bin/pythonize"}) {
    image.exe = exe;
    EXPECT_FALSE(is_python(image)) << exe;
  }
  image.modules.emplace_back().path = "/usr/lib/libpython3.10.so.1.0";
  EXPECT_TRUE(is_python(image));
}

}  // namespace
}  // namespace forksight::inspect
