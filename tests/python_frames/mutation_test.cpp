// Whatever the memory of a process contains, the reader must end, and must not return more than its limits allow.
#include <gtest/gtest.h>

#include <random>

#include "../support/rounds.hpp"
#include "image/live.hpp"
#include "image/stacks.hpp"
#include "inspect/python/python_frames.hpp"
#include "made_python.hpp"
#include "python_process.hpp"

namespace forksight::inspect {
namespace {

using test::MadePython;
using test::RecordingMemory;
using test::SparseMemory;

const int kRounds = test::rounds_of_fuzzing(1'000);

class DamagedMemory {
 public:
  DamagedMemory(image::Image image, const PythonInterpreter& python) : image_(std::move(image)), python_(python) {
    const auto recording = std::make_shared<RecordingMemory>(image_.memory);
    image_.memory = recording;
    EXPECT_FALSE(read().empty());
    memory_ = std::make_shared<SparseMemory>(recording->copy);
    reads_ = recording->reads;
    image_.memory = memory_;
  }

  // Damages some bytes that the reader will read: makes them random, 0xff, or equal to bytes of another place. Then
  // lets the reader read the memory, and repairs the bytes.
  void damage_and_read() {
    std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> kept;
    const int places = 1 + pick(4);
    for (int i = 0; i < places; ++i) {
      const auto& where = reads_[static_cast<std::size_t>(pick(static_cast<int>(reads_.size())))];
      const auto& from = reads_[static_cast<std::size_t>(pick(static_cast<int>(reads_.size())))];
      const std::size_t size = std::min<std::size_t>(where.size, 8);
      kept.emplace_back(where.address, memory_->bytes(where.address, size));
      std::vector<std::byte> bytes = kept.back().second;
      switch (pick(4)) {
        case 0:
          bytes[static_cast<std::size_t>(pick(static_cast<int>(size)))] = static_cast<std::byte>(pick(256));
          break;
        case 1: bytes.assign(size, std::byte{0xff}); break;
        case 2: std::ranges::copy_n(memory_->bytes(from.address, size).begin(), 1, bytes.begin()); break;
        default: bytes = memory_->bytes(from.address, size); break;
      }
      memory_->write(where.address, bytes);
    }
    const auto threads = read();
    EXPECT_LE(threads.size(), 4096U);
    for (const PythonThread& thread : threads) {
      EXPECT_LE(thread.stack.frames.size(), 128U);
      EXPECT_LE(thread.locals.size(), 256U);
      for (const model::Frame& frame : thread.stack.frames) EXPECT_GE(frame.line, 0);
    }
    for (std::size_t i = kept.size(); i-- > 0;) memory_->write(kept[i].first, kept[i].second);
  }

 private:
  std::vector<PythonThread> read() const {
    std::vector<std::string> limits;
    return read_python_threads(image_, python_, limits);
  }
  int pick(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }

  image::Image image_;
  PythonInterpreter python_;
  std::shared_ptr<SparseMemory> memory_;
  std::vector<RecordingMemory::Read> reads_;
  std::mt19937 random_{4711};
};

TEST(PythonMutation, OfMadeMemoryEnds) {
  for (const test::MadeVersion& version : test::made_versions()) {
    MadePython python(MadePython::layout_of(version));
    const std::uint64_t code = python.code(U"f", U"/模块.py", 1, {0x98, 1, 0x80, 0}, {U"a", U"b"});
    for (std::uint64_t i = 1; i < 4; ++i)
      python.thread(i << 12U, static_cast<std::int32_t>(i), python.frames({{code, 0}, {code, 2}, {code, -2}})[0]);
    DamagedMemory damaged(python.image(), python.interpreter());
    for (int round = 0; round < kRounds; ++round) damaged.damage_and_read();
  }
}

TEST(PythonMutation, OfRealMemoryEnds) {
  bool tried = false;
  for (int minor = kFirstPythonMinor; minor <= kLastPythonMinor; ++minor) {
    const auto interpreters = test::find_interpreters(minor);
    if (interpreters.empty()) continue;
    const test::PythonProcess process(interpreters.front(), "read");
    auto image = image::open_live(process.pid());
    ASSERT_TRUE(image) << image.error();
    image::Stacks stacks(image.value());
    std::vector<std::string> limits;
    const auto python = find_python(image.value(), stacks.symbols(), limits);
    ASSERT_TRUE(python);
    DamagedMemory damaged(image.value(), *python);
    for (int round = 0; round < kRounds / 10; ++round) damaged.damage_and_read();
    tried = true;
  }
  if (!tried) GTEST_SKIP() << "no CPython 3.9 to 3.15 here";
}

TEST(PythonMutation, OfRandomMemoryEnds) {
  std::mt19937 random{1};
  for (const test::MadeVersion& version : test::made_versions()) {
    const PythonLayout layout = MadePython::layout_of(version);
    for (int round = 0; round < kRounds / 15; ++round) {
      // Fill the memory with words that are small numbers or addresses of other words.
      const auto memory = std::make_shared<SparseMemory>();
      for (std::uint64_t at = 0x10000; at < 0x18000; at += 8) {
        const std::uint64_t number = random();
        memory->put(at, number % 4 == 0 ? number % 16 : 0x10000 + number % 0x8000 / 8 * 8);
      }
      image::Image image;
      image.memory = memory;
      std::vector<std::string> limits;
      EXPECT_LE(read_python_threads(image, {0x10000, layout}, limits).size(), 4096U);
    }
  }
}

}  // namespace
}  // namespace forksight::inspect
