// Tests the reader of line tables. The samples were made by the compiler of each version. Another test reads all tables
// of one module of each installed interpreter.
#include "inspect/python/python_lines.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "python_process.hpp"

namespace forksight::inspect {
namespace {

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

PythonLines kind_of(int minor) {
  return minor == 9 ? PythonLines::kDeltas : minor == 10 ? PythonLines::kRanges : PythonLines::kLocations;
}

struct Sample {
  int minor;
  std::string table;
  int size;
  std::map<int, int> lines;  // {first address: the line from there on}; line 0: the code has no line
};

// def f(a):            line 1
//   b = a if a else (
//     a +
//     1)
//   (200 empty lines)
//   for x in b:        line 205
//     g(
//  x)
//   return [
//   y for y in b]
const std::vector<Sample> kSamples{
    {9,
     "00010801020102ff02ff027f004c0801020102ff0602060102ff",
     48,
     {{0, 2},
      {8, 3},
      {10, 4},
      {12, 3},
      {14, 2},
      {16, 205},
      {24, 206},
      {26, 207},
      {28, 206},
      {34, 208},
      {40, 209},
      {42, 208}}},
    {10,
     "08010201020102ff02ff007f084c0201020106ff0602020106ff",
     48,
     {{0, 2},
      {8, 3},
      {10, 4},
      {12, 3},
      {14, 2},
      {16, 205},
      {24, 206},
      {26, 207},
      {28, 206},
      {34, 208},
      {40, 209},
      {42, 208}}},
    {11,
     "8000d80b0cf00002070780618061d80405d80405f103010506f003000304f05606000c0df000020304f0000203048061dd0405d80102f1030"
     "1"
     "0504f400010504f000010504f000010504f004010a10f000010a10d80d0ef003010a10f100010a10f400010a10f000010310",
     84,
     {{0, 1},
      {2, 2},
      {10, 3},
      {12, 4},
      {14, 3},
      {18, 2},
      {20, 205},
      {28, 206},
      {40, 207},
      {42, 206},
      {60, 208},
      {64, 209},
      {66, 208}}},
    {12,
     "8000d90b0c8161d80405d80405f103010506f003000304f05606000c0df2000203048061dc0405d80102f503010504f003020304f008000e0"
     "f"
     "f603010a10d808098221f203010a10f000010310f9f200010a10",
     98,
     {{0, 1},
      {2, 2},
      {10, 3},
      {12, 4},
      {14, 3},
      {18, 2},
      {20, 205},
      {30, 206},
      {40, 207},
      {42, 206},
      {54, 205},
      {56, 209},
      {58, 208},
      {72, 209},
      {80, 208},
      {88, 0},
      {92, 208}}},
    {13,
     "8000de0b0c8161d80405d80405f103010506f003000304f35606000c0d8061dc0405d80102f603010504f103000c0df108000e0ff303010a1"
     "0"
     "d90d0e880182218951f103010a10f000010310f9f200010a10",
     114,
     {{0, 1},
      {2, 2},
      {20, 3},
      {22, 4},
      {24, 3},
      {28, 2},
      {30, 205},
      {40, 206},
      {50, 207},
      {52, 206},
      {66, 205},
      {70, 209},
      {74, 208},
      {82, 209},
      {98, 208},
      {104, 0},
      {108, 208}}},
};

TEST(PythonLines, OfEachVersionAreThoseOfItsCompiler) {
  for (const Sample& sample : kSamples) {
    const auto table = from_hex(sample.table);
    for (int address = 0; address < sample.size; address += 2) {
      const int expected = std::prev(sample.lines.upper_bound(address))->second;
      EXPECT_EQ(find_python_line(kind_of(sample.minor), table, 1, address), expected)
          << "3." << sample.minor << " at " << address;
    }
  }
}

TEST(PythonLines, AreTheFirstBeforeTheFirstInstruction) {
  for (const Sample& sample : kSamples)
    EXPECT_EQ(find_python_line(kind_of(sample.minor), from_hex(sample.table), 7, -2), 7) << sample.minor;
}

TEST(PythonLines, OfACutTableAreUnknownBehindTheCut) {
  for (const Sample& sample : kSamples) {
    for (std::size_t size = 0; size < sample.table.size() / 2; ++size) {
      const auto table = from_hex(sample.table.substr(0, size * 2));
      const int line = find_python_line(kind_of(sample.minor), table, 1, sample.size + 1000);
      if (kind_of(sample.minor) != PythonLines::kDeltas) {
        EXPECT_EQ(line, 0) << sample.minor << " " << size;
      }
    }
  }
}

TEST(PythonLines, StayInBoundsWhateverTheTable) {
  for (const auto kind : {PythonLines::kDeltas, PythonLines::kRanges, PythonLines::kLocations}) {
    for (int value = 0; value < 256; ++value) {
      const std::vector<std::byte> table(100'000, static_cast<std::byte>(value));
      for (const std::int64_t address : {INT64_MIN, std::int64_t{0}, std::int64_t{1} << 40U, INT64_MAX})
        EXPECT_GE(find_python_line(kind, table, INT32_MAX, address), 0);
    }
  }
}

// Prints [minor, [[table, first line, [[address, line]]]]] for all code in a large module.
constexpr const char* kTellTables = R"(
import argparse, dis, json, sys
def codes(code):
    yield code
    for each in code.co_consts:
        if hasattr(each, "co_code"):
            yield from codes(each)
def tell(code):
    if hasattr(code, "co_lines"):
        lines = [(at, line or 0) for start, end, line in code.co_lines() for at in range(start, end, 2)]
        return code.co_linetable.hex(), code.co_firstlineno, lines
    starts = dict(dis.findlinestarts(code))
    lines, line = [], code.co_firstlineno
    for at in range(0, len(code.co_code), 2):
        line = starts.get(at, line)
        lines.append((at, line))
    return code.co_lnotab.hex(), code.co_firstlineno, lines
with open(argparse.__file__) as source:
    print(json.dumps([sys.version_info[1], [tell(each) for each in codes(compile(source.read(), "a", "exec"))]]))
)";

TEST(PythonLines, OfAWholeModuleAreThoseThatPythonReports) {
  int tried = 0;
  for (int minor = kFirstPythonMinor; minor <= kLastPythonMinor; ++minor) {
    for (const std::string& interpreter : test::find_interpreters(minor)) {
      SCOPED_TRACE(interpreter);
      const auto told = nlohmann::json::parse(test::output_of({interpreter, "-E", "-s", "-c", kTellTables}));
      ASSERT_EQ(told[0], minor);
      for (const auto& code : told[1]) {
        const auto table = from_hex(code[0]);
        for (const auto& line : code[2])
          ASSERT_EQ(find_python_line(kind_of(minor), table, code[1], line[0].get<int>()), line[1].get<int>())
              << code[1] << " at " << line[0];
      }
      ++tried;
    }
  }
  if (tried == 0) GTEST_SKIP() << "no CPython 3.9 to 3.15 here";
}

}  // namespace
}  // namespace forksight::inspect
