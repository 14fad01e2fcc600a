// Tests dumps of damaged traces. The dump has one line, with an offset, for each bad record. It also shows the records
// after a bad record.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "dump/dumped.hpp"
#include "support/handler_scene.hpp"
#include "support/rounds.hpp"
#include "support/scenes.hpp"
#include "support/trace_builder.hpp"

namespace forksight {
namespace {

using test::dumped;
using test::dumped_lines;
using test::TraceBuilder;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Damage, AShortRecordIsOneLine) {
  TraceBuilder trace;
  const auto bad = trace.record(trace::RecordType::kStack, trace::StackRecord{0, 0, 0, 4096, 0});
  trace.thread(1, "good");
  const auto result = dumped(trace.bytes());
  EXPECT_TRUE(
      has(result.text, dump::hex(bad) + " BAD: stack: 32 bytes after its header; its fields and tails need 4128\n"))
      << result.text;
  EXPECT_TRUE(has(result.text, "    name: good\n"));
  EXPECT_EQ(result.totals.bad, 1U);
  EXPECT_EQ(result.totals.records, 1U);
}

TEST(Damage, TheDumpContinuesAfterABadRecord) {
  TraceBuilder trace;
  trace.thread(1, "one");
  const auto bad = trace.thread(2, "two");
  trace.thread(3, "three");
  for (const std::uint64_t word : {std::uint64_t{0x1234}, ~std::uint64_t{0}, std::uint64_t{0}}) {
    TraceBuilder damaged = trace;
    damaged.poke(bad, word);
    const auto result = dumped(damaged.bytes());
    EXPECT_TRUE(has(result.text, dump::hex(bad) + " BAD: ")) << result.text;
    EXPECT_TRUE(has(result.text, "; 96 bytes passed\n")) << result.text;
    EXPECT_TRUE(has(result.text, "    name: three\n")) << result.text;
    EXPECT_EQ(result.totals.bad, 1U);
    EXPECT_EQ(result.totals.records, 2U);
  }
}

TEST(Damage, SaysThatTheFileIsCut) {
  TraceBuilder trace;
  trace.thread(1, "one");
  const auto second = trace.thread(2, "two");
  auto bytes = trace.bytes(0);
  bytes.resize(bytes.size() - 8);
  const auto inside = dumped(bytes);
  EXPECT_TRUE(has(inside.text, dump::hex(second) +
                                   " BAD: is 96 bytes long by its first word, and 88 bytes of the file are left; no "
                                   "record follows\n"))
      << inside.text;
  bytes.resize(second + 8);
  EXPECT_TRUE(has(dumped(bytes).text, dump::hex(second) + " BAD: has 8 bytes, too few for a record\n"));
  bytes.resize(second);
  EXPECT_TRUE(
      has(dumped(bytes).text, dump::hex(second) + " BAD: no record, although the header says that records go on to "))
      << dumped(bytes).text;
}

TEST(Damage, AnEmptyTraceHasNoHeader) {
  const auto result = dumped(std::vector<std::byte>(4096));
  EXPECT_TRUE(result.is_trace);
  EXPECT_TRUE(has(result.text, "0x0 BAD: a.fstrace: its writer had not finished creating it")) << result.text;
}

std::set<std::string> offsets(const std::vector<dump::Json>& lines) {
  std::set<std::string> found;
  for (const dump::Json& line : lines) {
    if (line["record"] != "BAD" && line["record"] != "end") found.insert(line["offset"].get<std::string>());
  }
  return found;
}

// If one byte of a trace is changed, the dump may lose only the record with this byte. The test does not check this for
// the bytes of a record's size: with a wrong size, a record may include the records after it. Each byte is changed in
// only one of three ways, because a dump for each way and byte would take a minute.
void flip_each_byte(const std::vector<std::byte>& good) {
  const std::set<std::string> all = offsets(dumped_lines(good));
  std::set<std::size_t> sizes;
  for (const std::string& offset : all) {
    const std::size_t at = std::stoul(offset, nullptr, 16);
    if (at != 0) sizes.insert({at, at + 1, at + 2, at + 3});
  }
  std::size_t refused = 0;
  const std::size_t step = test::step_between_positions(7);
  for (std::size_t at = 0; at < good.size(); at += step) {
    const unsigned change = std::array{1U, 0x80U, 0xffU}[at % 3];
    std::vector<std::byte> bytes = good;
    bytes[at] ^= std::byte(change);
    const auto lines = dumped_lines(bytes);
    if (lines.empty()) {
      ++refused;
      continue;
    }
    ASSERT_EQ(lines.back()["record"], "end");
    const std::set<std::string> kept = offsets(lines);
    std::size_t lost = 0;
    for (const std::string& offset : all) lost += kept.contains(offset) ? 0U : 1U;
    if (sizes.contains(at)) continue;
    ASSERT_LE(lost, 1U) << at << ' ' << change;
  }
  EXPECT_LE(refused, 24U);  // magic, version, header_bytes, byte_order, pointer_bytes
}

TEST(Damage, EachByteOfATraceMayChange) {
  test::LockTrace scene({});
  scene.end(scene.touch(trace::TouchKind::kLock, trace::kTouchTimed), 110);
  flip_each_byte(scene.trace.bytes());
}

TEST(Damage, EachByteOfATraceWithManyTailsMayChange) { flip_each_byte(test::whole_handler_trace().bytes()); }

TEST(Damage, EachPrefixIsDumped) {
  const auto good = test::whole_handler_trace().bytes();
  for (std::size_t size = trace::kHeaderBytes; size < good.size(); ++size) {
    const auto result = dumped({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
    ASSERT_TRUE(result.is_trace);
    ASSERT_TRUE(has(result.text, " end: ")) << size;
  }
}

}  // namespace
}  // namespace forksight
