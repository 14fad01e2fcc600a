// Tests that forksight finds the holder of the GIL in the memory of a made-up interpreter, which has the layout of
// CPython 3.11 on glibc 2.36.
#include "proc/python_gil.hpp"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <map>

namespace forksight::proc {
namespace {

constexpr std::uint64_t kGil = 0x10000, kState = 0x20000, kThread = 0x30000;
constexpr std::uint64_t kWord = kGil + 32 + 40;  // the first of the two futex words of the GIL's condition variable
constexpr std::int32_t kHolderTid = 77;
constexpr abi::Version kLibc{2, 36};

struct GilInterpreter {
  std::map<std::uint64_t, std::uint32_t> words;  // 4 bytes each

  GilInterpreter() {
    set8(kGil, 5000);
    set8(kGil + 8, kState);
    set4(kGil + 16, 1);
    set4(kGil + 32 + 36, 1U << 3U | 2U);  // one waiter, a monotonic clock
    set4(kGil + 80 + 16, 0);              // the kind of the mutex
    for (std::uint64_t at = kState; at < kState + 512; at += 8) set8(at, 1);
    set8(kState + 152, kThread);
    set8(kState + 160, kHolderTid);
    set8(kThread, kThread);
    set8(kThread + 16, kThread);
    set4(kThread + 0x2d0, kHolderTid);
  }
  void set4(std::uint64_t at, std::uint32_t value) { words[at] = value; }
  void set8(std::uint64_t at, std::uint64_t value) {
    words[at] = static_cast<std::uint32_t>(value);
    words[at + 4] = static_cast<std::uint32_t>(value >> 32U);
  }
  std::optional<std::uint64_t> read(std::uint64_t at, std::size_t size) const {
    const auto low = words.find(at);
    const auto high = words.find(at + 4);
    if (low == words.end() || (size == 8 && high == words.end())) return std::nullopt;
    return low->second | (size == 8 ? std::uint64_t{high->second} << 32U : 0);
  }
  std::optional<GilWait> find(const Syscall& call, abi::Version libc = kLibc) const {
    return find_gil_wait(call, libc, [this](std::uint64_t at, std::size_t size) { return read(at, size); });
  }
};

Syscall waits_for(std::uint64_t word) {
  Syscall call;
  call.in_syscall = true;
  call.number = SYS_futex;
  call.args = {word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, 0x7000, 0, 0xffffffff};
  return call;
}

TEST(PythonGil, NamesTheThreadThatHasIt) {
  for (const std::uint64_t word : {kWord, kWord + 4}) {
    const auto wait = GilInterpreter().find(waits_for(word));
    ASSERT_TRUE(wait.has_value());
    EXPECT_EQ(wait->gil, kGil);
    EXPECT_EQ(wait->holder, kHolderTid);
  }
}

TEST(PythonGil, IsFoundWithGlibcWhoseConditionsCountNoReferences) {
  GilInterpreter interpreter;
  interpreter.set4(kGil + 32 + 28, 1U << 3U);
  interpreter.set4(kGil + 32 + 36, 0);
  EXPECT_TRUE(interpreter.find(waits_for(kGil + 32 + 32)).has_value());
}

TEST(PythonGil, IsNotFoundInAnotherWait) {
  const GilInterpreter interpreter;
  EXPECT_FALSE(interpreter.find(waits_for(kWord + 8)).has_value());
  Syscall call = waits_for(kWord);
  call.args[3] = 0;  // without a timeout: no thread waits for a GIL in this way
  EXPECT_FALSE(interpreter.find(call).has_value());
  call = waits_for(kWord);
  call.args[1] = FUTEX_WAKE | FUTEX_PRIVATE_FLAG;
  EXPECT_FALSE(interpreter.find(call).has_value());
  call = waits_for(kWord);
  call.in_syscall = false;
  EXPECT_FALSE(interpreter.find(call).has_value());
  EXPECT_FALSE(interpreter.find(waits_for(kWord), {2, 99}).has_value());
}

TEST(PythonGil, IsNotFoundIfNoThreadHoldsIt) {
  GilInterpreter interpreter;
  interpreter.set4(kGil + 16, 0);
  EXPECT_FALSE(interpreter.find(waits_for(kWord)).has_value());
}

TEST(PythonGil, AHolderThatHasEndedIsNotNamed) {
  GilInterpreter interpreter;
  interpreter.set4(kThread + 0x2d0, 0);
  EXPECT_FALSE(interpreter.find(waits_for(kWord)).has_value());
}

TEST(PythonGil, IsNotFoundIfTheStateNamesTwoThreads) {
  constexpr std::uint64_t kOther = 0x40000;
  GilInterpreter interpreter;
  interpreter.set8(kState + 200, kOther);
  interpreter.set8(kOther, kOther);
  interpreter.set8(kOther + 16, kOther);
  interpreter.set4(kOther + 0x2d0, 78);
  EXPECT_FALSE(interpreter.find(waits_for(kWord)).has_value());
}

TEST(PythonGil, IsNotConfusedWithAnotherCondition) {
  GilInterpreter free_of_waiters;
  free_of_waiters.set4(kGil + 32 + 36, 2);
  EXPECT_FALSE(free_of_waiters.find(waits_for(kWord)).has_value());
  GilInterpreter recursive;
  recursive.set4(kGil + 80 + 16, 1);
  EXPECT_FALSE(recursive.find(waits_for(kWord)).has_value());
  GilInterpreter without_interval;
  without_interval.set8(kGil, 0);
  EXPECT_FALSE(without_interval.find(waits_for(kWord)).has_value());
}

TEST(PythonGil, LiesInTheDataOfTheInterpreter) {
  const auto mapping = [](std::uint64_t start, const char* path, bool writable) {
    Mapping one;
    one.start = start;
    one.end = start + 0x1000;
    one.path = path;
    one.writable = writable;
    return one;
  };
  const std::vector<Mapping> mappings = {mapping(0x1000, "/usr/bin/python3.11", false),
                                         mapping(0x2000, "/usr/bin/python3.11", true),
                                         mapping(0x3000, "", true),
                                         mapping(0x5000, "/opt/lib/libpython3.12.so.1.0", true),
                                         mapping(0x7000, "/opt/app", true),
                                         mapping(0x8000, "", true)};
  for (const std::uint64_t inside : {0x2000UL, 0x2fffUL, 0x3010UL, 0x5000UL})
    EXPECT_TRUE(is_data_of_python(mappings, inside));
  for (const std::uint64_t outside : {0x1000UL, 0x4000UL, 0x7010UL, 0x8010UL})
    EXPECT_FALSE(is_data_of_python(mappings, outside));
}

}  // namespace
}  // namespace forksight::proc
