#include "collect/trace_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/reader.hpp"
#include "support/trace_builder.hpp"

namespace forksight::collect {
namespace {

using test::TraceBuilder;
using trace::TraceHeader;

std::string error_of(std::vector<std::byte> bytes) {
  const auto file = TraceFile::parse("a.fstrace", std::move(bytes));
  return file ? "" : file.error();
}

TEST(TraceFile, ReturnsCommittedRecords) {
  TraceBuilder trace;
  const std::uint64_t first = trace.thread(1000, "main");
  const std::uint64_t second = trace.as(1000, 1001).thread(1001, "worker");
  const auto file = TraceFile::parse("a.fstrace", trace.bytes());
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->records().size(), 2U);
  EXPECT_EQ(file->records()[0].offset, first);
  EXPECT_EQ(file->records()[1].offset, second);
  EXPECT_EQ(file->records()[1].tid, 1001);
  EXPECT_EQ(file->records()[1].fixed<trace::ThreadRecord>().tid, 1001);
  EXPECT_TRUE(file->limits().empty());
  EXPECT_EQ(file->info().pid, 1000);
  EXPECT_EQ(file->info().exe, "/opt/app/app");
  EXPECT_EQ(file->info().cmdline, (std::vector<std::string>{"./app", "--fast"}));
}

TEST(TraceFile, RefusesFilesThatAreNotTraces) {
  TraceBuilder trace;
  EXPECT_EQ(
      error_of(TraceBuilder(trace).poke(0, std::uint64_t{7}).bytes()),
      "a.fstrace: not a forksight trace; the traces are the *.fstrace files in the folder that `forksight run` wrote");
  EXPECT_EQ(
      error_of({std::byte{'F'}, std::byte{'R'}}),
      "a.fstrace: not a forksight trace; the traces are the *.fstrace files in the folder that `forksight run` wrote");
}

TEST(TraceFile, RefusesANewerVersion) {
  TraceBuilder trace;
  EXPECT_EQ(error_of(TraceBuilder(trace).poke(offsetof(TraceHeader, version), std::uint32_t{4}).bytes()),
            "a.fstrace: version 4, this build reads up to 1; use the build that recorded it");
  EXPECT_NE(error_of(TraceBuilder(trace).poke(offsetof(TraceHeader, version), std::uint32_t{0}).bytes()), "");
}

TEST(TraceFile, RefusesTheOtherByteOrder) {
  TraceBuilder swapped;
  swapped.poke(0, __builtin_bswap64(trace::kMagic));
  EXPECT_EQ(error_of(swapped.bytes()),
            "a.fstrace: written on a machine with the other byte order; read it on such a machine");
  TraceBuilder odd;
  odd.poke(offsetof(TraceHeader, byte_order), std::uint32_t{0x04030201});
  EXPECT_NE(error_of(odd.bytes()).find("byte order mark 0x4030201"), std::string::npos);
}

TEST(TraceFile, RefusesOtherHeaders) {
  EXPECT_NE(error_of(TraceBuilder().poke(offsetof(TraceHeader, header_bytes), std::uint32_t{64}).bytes()), "");
  EXPECT_NE(error_of(TraceBuilder().poke(offsetof(TraceHeader, pointer_bytes), std::uint32_t{4}).bytes()), "");
}

TEST(TraceFile, RefusesACutHeader) {
  std::vector<std::byte> bytes = TraceBuilder().bytes();
  bytes.resize(100);
  EXPECT_EQ(error_of(bytes), "a.fstrace: cut inside its header: 100 bytes of 4096; copy the whole file again");
}

TEST(TraceFile, AFileThatWasNeverFinishedHasNoRecords) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{4096}}) {
    const auto file = TraceFile::parse("a.fstrace", std::vector<std::byte>(size));
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(file->records().empty());
    EXPECT_EQ(file->limits().size(), 1U);
  }
}

TEST(TraceFile, UsesAllRecordsBeforeACut) {
  TraceBuilder trace;
  trace.thread(1, "one");
  trace.thread(2, "two");
  trace.thread(3, "three");
  std::vector<std::byte> bytes = trace.bytes(0);
  bytes.resize(bytes.size() - 8);
  const auto file = TraceFile::parse("a.fstrace", bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->records().size(), 2U);
  ASSERT_EQ(file->limits().size(), 1U);
  EXPECT_NE(file->limits()[0].find("a.fstrace: cut after record 2:"), std::string::npos) << file->limits()[0];
}

TEST(TraceFile, AFileCutBetweenRecordsIsAlsoReportedAsCut) {
  TraceBuilder trace;
  trace.thread(1, "one");
  const std::size_t whole = trace.size();
  trace.thread(2, "two");
  std::vector<std::byte> bytes = trace.bytes(0);
  bytes.resize(whole);
  const auto file = TraceFile::parse("a.fstrace", bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->records().size(), 1U);
  ASSERT_EQ(file->limits().size(), 1U);
  EXPECT_NE(file->limits()[0].find("cut after record 1"), std::string::npos);
}

TEST(TraceFile, StopsAtWordsThatNoWriterWrites) {
  const auto thread = trace::RecordType::kThread;
  const auto committed = trace::RecordState::kCommitted;
  const std::uint64_t strange[] = {
      trace::pack_word(16, thread, committed),                            // smaller than a header
      trace::pack_word(100, thread, committed),                           // not aligned
      trace::pack_word(trace::kMaxRecordBytes + 16, thread, committed),   // larger than any record
      trace::pack_word(96, thread, static_cast<trace::RecordState>(3)),   // no such state
      trace::pack_word(96, thread, committed) | std::uint64_t{1} << 60U,  // high byte in use
  };
  for (const std::uint64_t word : strange) {
    TraceBuilder trace;
    trace.thread(1, "one");
    trace.end_with(word);
    const auto file = TraceFile::parse("a.fstrace", trace.bytes(512));
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(file->records().size(), 1U);
    ASSERT_EQ(file->limits().size(), 1U) << std::hex << word;
    EXPECT_NE(file->limits()[0].find("damaged after record 1"), std::string::npos) << file->limits()[0];
  }
}

TEST(TraceFile, SkipsUnfinishedRecordsAndSaysSo) {
  TraceBuilder trace;
  trace.thread(1, "one");
  trace.record(trace::RecordType::kThread, trace::ThreadRecord{}, trace::RecordState::kWriting);
  trace.thread(3, "three");
  const auto file = TraceFile::parse("a.fstrace", trace.bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->records().size(), 2U);
  ASSERT_EQ(file->limits().size(), 1U);
  EXPECT_NE(file->limits()[0].find("1 of 3 records were begun and not finished"), std::string::npos);
}

TEST(TraceFile, SkipsRecordsThatAreShorterThanTheirTail) {
  TraceBuilder trace;
  trace.record(trace::RecordType::kModule, trace::ModuleRecord{0, 1, 2, 0, 0xffff'ffff, {}});
  trace.record(trace::RecordType::kStack, trace::StackRecord{0, 0, 0, 4096, 0});
  trace.record(trace::RecordType::kFork, trace::ForkRecord{1, 0, 0, 0, 0, 0xffff'ffff, 0xffff'ffff, 0, 0});
  trace.record(trace::RecordType::kHandlers, trace::HandlersRecord{0xffff'ffff, 0});
  trace.append(trace::RecordType::kTouch, {});
  trace.thread(1, "good");
  const auto file = TraceFile::parse("a.fstrace", trace.bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->records().size(), 1U);
  ASSERT_EQ(file->limits().size(), 1U);
  EXPECT_NE(file->limits()[0].find("5 of 6 records are shorter"), std::string::npos) << file->limits()[0];
}

TEST(TraceFile, ReturnsRecordsOfUnknownTypes) {
  TraceBuilder trace;
  trace.append(static_cast<trace::RecordType>(999), std::vector<std::byte>(8));
  trace.thread(1, "good");
  const auto file = TraceFile::parse("a.fstrace", trace.bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->records().size(), 2U);
  EXPECT_TRUE(file->limits().empty());
}

TEST(TraceFile, SaysHowManyRecordsWereDropped) {
  const auto file = TraceFile::parse("a.fstrace", TraceBuilder().dropped(12, 3400).bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->limits(),
            std::vector<std::string>{"a.fstrace: 12 records (3400 bytes) did not fit into the trace and are missing"});
}

TEST(TraceFile, KnowsThatRecordsMayBeMissing) {
  const auto has_gaps = [](const std::vector<std::byte>& bytes) {
    const auto file = TraceFile::parse("a.fstrace", bytes);
    return file.ok() && file->has_gaps();
  };
  const trace::TouchEndRecord end{};
  EXPECT_FALSE(has_gaps(TraceBuilder().bytes()));
  EXPECT_TRUE(has_gaps(TraceBuilder().dropped(1, 64).bytes()));
  TraceBuilder unfinished;
  unfinished.record(trace::RecordType::kTouchEnd, end, trace::RecordState::kWriting);
  EXPECT_TRUE(has_gaps(unfinished.bytes()));
  TraceBuilder other;
  other.record(trace::RecordType::kForked, trace::ForkedRecord{}, trace::RecordState::kWriting);
  EXPECT_FALSE(has_gaps(other.bytes())) << "a missing kForked record says nothing about the return of a call";
  TraceBuilder damaged;
  damaged.end_with(0x1234);
  EXPECT_TRUE(has_gaps(damaged.bytes()));
  TraceBuilder cut;
  cut.record(trace::RecordType::kTouchEnd, end);
  std::vector<std::byte> bytes = cut.bytes(0);
  bytes.resize(bytes.size() - 8);
  EXPECT_TRUE(has_gaps(bytes));
}

TEST(TraceFile, TextsWithoutTheirNulAreBounded) {
  const auto file =
      TraceFile::parse("a.fstrace", TraceBuilder()
                                        .host(std::string(200, 'h'))
                                        .exe(std::string(2000, 'e'), std::string(100, 'c'))
                                        .poke(offsetof(TraceHeader, cmdline_bytes), std::uint32_t{0xffff'ffff})
                                        .bytes());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->info().host.size(), 64U);
  EXPECT_EQ(file->info().exe.size(), 1024U);
  EXPECT_EQ(file->info().cmdline.front(), std::string(100, 'c'));
}

TEST(TraceFile, DoesNotHangOnAFifo) {
  const std::string path = testing::TempDir() + "forksight_fifo_" + std::to_string(::getpid()) + ".fstrace";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto file = TraceFile::read(files::reader_of_test(), path);
  ::unlink(path.c_str());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error(), path + ": not a regular file, so not a forksight trace");
}

}  // namespace
}  // namespace forksight::collect
