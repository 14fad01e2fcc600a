// Tests what the dump shows of undamaged records.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "dump/dumped.hpp"
#include "enumerators.hpp"
#include "forksight/trace/records.hpp"
#include "support/trace_builder.hpp"

namespace forksight {
namespace {

using test::dumped;
using test::dumped_lines;
using test::TraceBuilder;

// The dump of the records, without the long dump of the header.
std::string records_of(const TraceBuilder& trace) {
  const std::string text = dumped(trace.bytes()).text;
  return text.substr(text.find("\n0x1000 ") + 1);
}

TEST(Dump, ShowsEachRecordWithItsFieldsAndTails) {
  TraceBuilder trace;
  trace.module("/opt/app/app", 0x5550'0000'0000, 0x5550'0000'0000, 0x5550'0001'0000);
  const auto stack = trace.stack(0x5550'0000'1234, {1, 2, 3, 4, 0x7ffc'0000'0040});
  const auto worker = trace.thread(1001, "worker", TraceBuilder::kPid, 0x5550'0000'1300, stack, trace::kThreadForeign);
  trace::ForkRecord fork{};
  fork.ordinal = 1;
  fork.stack = stack;
  fork.flags = trace::kForkByWrapper | 1U << 30U;
  fork.tasks = 2;
  const auto fork_at = trace.fork(fork, {worker}, {});
  trace.as(2600).record(trace::RecordType::kForked, trace::ForkedRecord{fork_at, -1, 11, 5});
  EXPECT_EQ(records_of(trace), R"(0x1000 module  pid 1000  tid 1000  +0.001000 s  112 bytes
    bias: 0x555000000000
    start: 0x555000000000
    end: 0x555000010000
    build_id_bytes: 0
    path_bytes: 12
    build_id: 0000000000000000000000000000000000000000000000000000000000000000
    path: /opt/app/app
0x1070 stack  pid 1000  tid 1000  +0.002000 s  112 bytes
    pc: 0x555000001234
    sp: 0x7ffc00000000
    fp: 0x0
    bytes: 40
    flags: -
    memory:
      [0] 0x1 0x2 0x3 0x4
      [4] 0x7ffc00000040
0x10e0 thread  pid 1000  tid 1000  +0.003000 s  96 bytes
    tid: 1001
    creator_tid: 1000
    start_routine: 0x555000001300
    creation_stack: 0x1070
    created_ns: 0
    flags: kThreadForeign
    name: worker
    thread_pointer: 0x7f00003e9000
0x1140 fork  pid 1000  tid 1000  +0.004000 s  112 bytes
    ordinal: 1
    stack: 0x1070
    forking_thread: 0x0
    handlers: 0x0
    flags: kForkByWrapper,0x40000000
    thread_count: 1
    runtime_count: 0
    tasks: 2
    prepare_ns: 0
    threads:
      [0] thread=0x10e0 wait_object=0x0 wait_kind=kNone held=0
    runtimes: -
0x11b0 forked  pid 2600  tid 2600  +0.005000 s  64 bytes
    fork: 0x1140
    child: -1
    error: 11
    total_ns: 5
0x11f0 end: 5 records, 0 unfinished, 0 bad
)");
}

TEST(Dump, ShowsTextAsLinesAndSetsByName) {
  TraceBuilder trace;
  trace.python(trace::PythonMoment::kFork, "one\ntwo \x1b[31m\n", 1000);
  trace.record(trace::RecordType::kLibcCall, trace::LibcCallRecord{trace::bit_of(trace::LibcLock::kTimeZone), "tzset"});
  const std::string text = records_of(trace);
  EXPECT_NE(text.find("    text:\n      | one\n      | two \\x1b[31m\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    locks: kTimeZone\n    name: tzset\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    moment: kFork\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("reserved"), std::string::npos) << text;
}

TEST(Dump, ShowsTheHeader) {
  TraceBuilder trace;
  trace.poke(offsetof(trace::TraceHeader, cures), std::uint32_t{1});
  const std::string text = dumped(trace.bytes()).text;
  EXPECT_TRUE(text.starts_with("0x0 header  4096 bytes\n    magic: 0x31544847534b5246\n    version: 1\n")) << text;
  EXPECT_NE(text.find("\n    host: node1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n    cures: kOmp\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n    cmdline: ./app\\x00--fast\n"), std::string::npos) << text;
}

TEST(Dump, JsonLinesHaveTheSameFields) {
  TraceBuilder trace;
  trace.as(1000, 1001)
      .record(trace::RecordType::kTimer,
              trace::TimerRecord{0x1040, trace::TimerKind::kPosix, 14, ~std::uint64_t{0}, 0});
  const auto lines = dumped_lines(trace.bytes());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["record"], "header");
  EXPECT_EQ(lines[0]["fields"]["pid"], 1000);
  EXPECT_EQ(lines[1].dump(),
            R"({"offset":"0x1000","record":"timer","pid":1000,"tid":1001,"time_ns":1001000000,"bytes":64,)"
            R"("fields":{"fork":"0x1040","kind":"kPosix","number":14,"remaining_ns":18446744073709551615,)"
            R"("interval_ns":0}})");
  EXPECT_EQ(lines[2]["says"], "1 records, 0 unfinished, 0 bad");
}

// Makes a record of each type in records.def, with two elements in each of its tails.
TEST(Dump, KnowsEachRecord) {
  TraceBuilder trace;
  std::map<std::string, std::set<std::string>> tails;
  for (const trace::RecordTerms& terms : trace::kRecords) {
    std::vector<std::byte> payload(terms.fixed_bytes, std::byte{0x81});
    for (const trace::TailTerms& tail : trace::kTails) {
      if (tail.type != terms.type) continue;
      const std::uint32_t count = 2;
      std::memcpy(payload.data() + tail.count_offset, &count, sizeof count);
      payload.resize(payload.size() + 2 * tail.element_bytes, std::byte{0x81});
      tails[terms.name].insert(tail.name);
    }
    trace.append(terms.type, payload);
  }
  const auto lines = dumped_lines(trace.bytes());
  ASSERT_EQ(lines.size(), std::size(trace::kRecords) + 2);
  for (std::size_t i = 0; i < std::size(trace::kRecords); ++i) {
    const dump::Json& line = lines[i + 1];
    const std::string name = trace::kRecords[i].name;
    EXPECT_EQ(line["record"], name);
    EXPECT_FALSE(line["fields"].empty()) << name;
    for (const std::string& tail : tails[name]) EXPECT_EQ(line["fields"][tail].empty(), false) << name << ' ' << tail;
    EXPECT_FALSE(line["fields"].contains("more")) << name;
  }
  const auto totals = dumped(trace.bytes()).totals;
  EXPECT_EQ(totals.records, std::size(trace::kRecords));
  EXPECT_EQ(totals.bad, 0U);
}

TEST(Dump, ShowsRecordsAndValuesThatItDoesNotKnow) {
  TraceBuilder trace;
  trace.append(static_cast<trace::RecordType>(999), {std::byte{0xab}, std::byte{1}});
  // A newer writer may write a longer record of a known type.
  trace.append(trace::RecordType::kModuleGone, std::vector<std::byte>(48, std::byte{7}));
  trace.record(trace::RecordType::kTouchEnd, trace::TouchEndRecord{}, trace::RecordState::kWriting);
  trace.record(trace::RecordType::kNote, trace::NoteRecord{static_cast<trace::NoteCode>(99), 5, 3});
  const std::string text = records_of(trace);
  EXPECT_NE(text.find("unknown 999  pid 1000  tid 1000  +0.001000 s  48 bytes\n    payload: ab01"), std::string::npos)
      << text;
  EXPECT_NE(text.find("    more: 07070707"), std::string::npos) << text;
  EXPECT_NE(text.find("48 bytes: unfinished: its writer was killed, or still writes\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    code: 99\n    reserved: 5\n    value: 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" end: 4 records, 1 unfinished, 0 bad\n"), std::string::npos) << text;
}

TEST(Dump, StopsIfTheOutputCannotBeWritten) {
  TraceBuilder trace;
  trace.thread(1, "one");
  const auto file = collect::TraceFile::parse("a.fstrace", trace.bytes());
  EXPECT_FALSE(dump::dump_trace(file.value(), dump::Format::kText, [](std::string_view) { return false; }));
}

enum class Sparse { kOne = 1, kFive = 5 };

TEST(Enumerators, AreNamedAsInTheSource) {
  EXPECT_EQ(name_of_value<Sparse>(0), "");
  EXPECT_EQ(name_of_value<Sparse>(5), "kFive");
  EXPECT_EQ(name_of_value<Sparse>(1'000'000), "");
  EXPECT_EQ(name_of_value<trace::NoteCode>(57), "kHoldTimesFull");
  EXPECT_EQ(name_of_bit<trace::ForkFlag>(16), "kForkBypassed");
  EXPECT_EQ(name_of_bit<trace::ForkFlag>(3), "");
}

}  // namespace
}  // namespace forksight
