// Compares the stacks that the shim writes about its interpreter with what the analyzer reads from the same memory. The
// memory is made up with the layout of each version. The test maps it at the addresses that its pointers contain.
#include "python/own_frames.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "collect/python_text.hpp"
#include "inspect/python/python_frames.hpp"
#include "made_python.hpp"

namespace forksight {
namespace {

using test::MadePython;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kOwn = 0x7000;  // pthread_self() of the thread that writes the stacks
constexpr std::uint64_t kOther = 0x8000;

// Maps the made-up memory into this process, at the addresses that its pointers contain.
class Mapped {
 public:
  explicit Mapped(const test::SparseMemory& memory) {
    memory.for_each_piece([&](std::uint64_t address, std::span<const std::byte> bytes) {
      const std::uint64_t page = address / kPage * kPage;
      if (pages_.empty() || pages_.back() != page) {
        void* const wanted = reinterpret_cast<void*>(page);
        if (mmap(wanted, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
            wanted)
          throw std::runtime_error("the memory of the made interpreter is taken");
        pages_.push_back(page);
      }
      std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
    });
  }
  ~Mapped() {
    for (const std::uint64_t page : pages_) munmap(reinterpret_cast<void*>(page), kPage);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

 private:
  std::vector<std::uint64_t> pages_;
};

class OwnPythonFrames : public testing::TestWithParam<test::MadeVersion> {
 protected:
  OwnPythonFrames() : python_(MadePython::layout_of(GetParam())) {
    python_.memory().put(MadePython::kRuntime, std::array<char, 8>{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'});
    offsets_ = MadePython::offsets_of(GetParam());
    put_offsets();
  }

  void put_offsets() { python_.memory().write(MadePython::kRuntime + 8, std::as_bytes(std::span(offsets_))); }
  // Bytes 0 to 15 of the instructions belong to the line after the first. The rest belongs to a line 300 lines later.
  std::uint64_t code(const std::u32string& name, const std::u32string& file = U"/app/main.py") {
    return python_.code(name, file, 10,
                        {0x80 | 11U << 3U | 7U, 0, 1, 0x80 | 13U << 3U | 7U, 0x40 | (600U & 63U), 600U >> 6U});
  }

  std::string tell(std::uint64_t own, bool all = true, std::uint32_t most = 1U << 16U) {
    const Mapped mapped(python_.memory());
    const OwnPythonLayout layout = read_own_python_layout(MadePython::kRuntime);
    if (layout.runtime == 0) return "not understood";
    std::vector<char> text(most);
    std::vector<std::byte> scratch(OwnFrames::kScratchBytes);
    OwnFrames frames(layout, text.data(), most, scratch.data());
    frames.add_one(own);
    if (all) frames.add_others(own);
    is_cut_ = frames.is_cut();
    return {text.data(), frames.bytes()};
  }

  static std::string words(std::uint64_t pointer, const model::Stack& stack) {
    std::string text = std::to_string(pointer) + (stack.cut ? " cut\n" : "\n");
    for (const model::Frame& frame : stack.frames)
      text += frame.function + " " + frame.file + ":" + std::to_string(frame.line) + "\n";
    return text;
  }
  std::string parsed(const std::string& text) {
    std::map<std::uint64_t, std::string> threads;
    for (const auto& thread : collect::parse_python_stacks(text, kOwn))
      threads[thread.pointer] = words(thread.pointer, thread.stack);
    return joined(threads);
  }
  std::string seen_by_analyzer() {
    std::vector<std::string> limits;
    std::map<std::uint64_t, std::string> threads;
    for (const auto& thread : inspect::read_python_threads(python_.image(), python_.interpreter(), limits))
      threads[thread.pointer] = words(thread.pointer, thread.stack);
    return joined(threads);
  }
  static std::string joined(const std::map<std::uint64_t, std::string>& threads) {
    std::string text;
    for (const auto& [pointer, words] : threads) text += words;
    return text;
  }

  MadePython python_;
  std::vector<std::uint64_t> offsets_;
  bool is_cut_ = false;
};

TEST_P(OwnPythonFrames, AreThoseThatTheAnalyzerReads) {
  const std::u32string half{U'x', char32_t{0xDC80}, U'y'};
  const auto frames = python_.frames({{code(U"inner"), 4},
                                      {code(U"größe", U"/模块.py"), 0},
                                      {0, 0, 3},
                                      {code(half, U"/😀 and more.py"), 14},
                                      {code(U"outer"), 24},
                                      {code(U"first"), -2},
                                      {code(U"behind"), 1000}});
  const std::uint64_t own = python_.thread(kOwn, 100, frames[0]);
  python_.thread(kOther, 101, python_.frames({{code(U"waits"), 2}})[0]);
  const std::string text = tell(own);
  EXPECT_FALSE(is_cut_);
  EXPECT_TRUE(text.starts_with("Stack (most recent call first):\n  File \"/app/main.py\", line 11 in inner\n")) << text;
  EXPECT_NE(text.find("line 311 in outer\n"), std::string::npos) << text;
  EXPECT_NE(text.find("line ??? in behind\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nThread 0x0000000000008000 (most recent call first):\n"), std::string::npos) << text;
  EXPECT_EQ(parsed(text), seen_by_analyzer());
}

// The shim may copy the text of a frame that it wrote before. It must do so only for the same instruction of the same
// code object.
TEST_P(OwnPythonFrames, ThatRepeatHaveTheSameLines) {
  const std::uint64_t f = code(U"f");
  const std::uint64_t g = code(U"g");
  const auto frames = python_.frames({{f, 2}, {g, 2}, {f, 2}, {f, 24}, {f, 130}, {g, 2}, {f, 2}, {g, 24}});
  const std::uint64_t own = python_.thread(kOwn, 100, frames[0]);
  python_.thread(kOther, 101, python_.frames({{f, 24}, {g, 2}})[0]);
  EXPECT_EQ(parsed(tell(own)), seen_by_analyzer());
}

TEST_P(OwnPythonFrames, OfOneThreadAreItsOwn) {
  const std::uint64_t own = python_.thread(kOwn, 100, python_.frames({{code(U"f"), 2}})[0]);
  python_.thread(kOther, 101, python_.frames({{code(U"g"), 2}})[0]);
  EXPECT_EQ(tell(own, false), "Stack (most recent call first):\n  File \"/app/main.py\", line 11 in f\n");
}

TEST_P(OwnPythonFrames, EndWhereTheChainBreaks) {
  const auto frames = python_.frames({{code(U"f"), 2}, {code(U"g"), 2}});
  python_.memory().put(frames[0] + python_.interpreter().layout.frame_back, std::uint64_t{0xdead0000});
  const std::uint64_t own = python_.thread(kOwn, 100, frames[0]);
  EXPECT_EQ(tell(own), "Stack (most recent call first):\n  File \"/app/main.py\", line 11 in f\n  ...\n");
}

TEST_P(OwnPythonFrames, OfACircleEnd) {
  const auto frames = python_.frames({{code(U"f"), 2}, {code(U"g"), 2}});
  python_.memory().put(frames[1] + python_.interpreter().layout.frame_back, frames[0]);
  const std::uint64_t own = python_.thread(kOwn, 100, frames[0]);
  const std::string text = tell(own);
  EXPECT_TRUE(text.ends_with("  ...\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 102);
}

TEST_P(OwnPythonFrames, OfAnObjectThatIsNoCodeAreRefused) {
  const std::uint64_t object = code(U"f");
  python_.memory().put(object + python_.interpreter().layout.object_type, python_.string(U"str"));
  const std::uint64_t own = python_.thread(kOwn, 100, python_.frames({{object, 2}})[0]);
  EXPECT_EQ(tell(own), "Stack (most recent call first):\n  ...\n");
}

// A name that contains a newline would look like two frames, so the shim replaces the newline.
TEST_P(OwnPythonFrames, AreOneLineEach) {
  const std::uint64_t own =
      python_.thread(kOwn, 100, python_.frames({{code(U"a\nb", std::u32string(600, U'f')), 2}})[0]);
  const std::string text = tell(own);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2) << text;
  EXPECT_NE(text.find(" in a?b\n"), std::string::npos) << text;
  EXPECT_NE(text.find(std::string(500, 'f') + "...\""), std::string::npos) << text;
}

TEST_P(OwnPythonFrames, EndWhereTheBufferEnds) {
  const std::uint64_t own = python_.thread(kOwn, 100, python_.frames({{code(U"f"), 2}, {code(U"g"), 2}})[0]);
  EXPECT_EQ(tell(own, true, 40).size(), 40U);
  EXPECT_TRUE(is_cut_);
}

TEST_P(OwnPythonFrames, AreNotReadFromAnotherVersion) {
  const std::uint64_t own = python_.thread(kOwn, 100, python_.frames({{code(U"f"), 2}})[0]);
  offsets_[0] = 0x0310'00f0;
  put_offsets();
  EXPECT_EQ(tell(own), "not understood");
}

TEST_P(OwnPythonFrames, AreNotReadWithoutTheGil) {
  const std::uint64_t own = python_.thread(kOwn, 100, python_.frames({{code(U"f"), 2}})[0]);
  offsets_[1] = 1;
  put_offsets();
  EXPECT_EQ(tell(own), "not understood");
}

std::vector<test::MadeVersion> versions_with_gil() {
  auto versions = test::made_versions();
  std::erase_if(versions, [](const auto& version) {
    return version.minor < inspect::kFirstDescribedMinor || version.is_free_threaded;
  });
  return versions;
}
INSTANTIATE_TEST_SUITE_P(CPython, OwnPythonFrames, testing::ValuesIn(versions_with_gil()),
                         [](const auto& test) { return test::name_of(test.param); });

}  // namespace
}  // namespace forksight
