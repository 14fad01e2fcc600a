// Tests findings about streams whose buffers contained bytes at a fork. The parent and each child then write out their
// own copies of these bytes.
#include <gtest/gtest.h>

#include <cstring>

#include "diagnose/diagnose.hpp"
#include "forksight/trace/output.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::TraceBuilder;
using trace::FlushKind;
using trace::RecordType;

// A parent with one thread. The buffer of its stdout contains "the job begins\n" when it forks.
struct OutputTrace {
  explicit OutputTrace(std::string_view text = "the job begins\n", std::int32_t number = 1) {
    trace.as(test::kParent);
    fork = fork_of(test::kChild);
    trace::UnflushedRecord record{fork, 0x40, text.size(), 1, number, static_cast<std::uint32_t>(text.size()), 0, {}};
    std::memcpy(record.text, text.data(), std::min(text.size(), sizeof record.text));
    unflushed = trace.record(RecordType::kUnflushed, record);
  }

  std::uint64_t fork_of(std::int32_t child) {
    trace::ForkRecord fixed{};
    fixed.ordinal = 1;
    const std::uint64_t reference = trace.fork(fixed, {}, {});
    trace.record(RecordType::kForked, trace::ForkedRecord{reference, child, 0, 5});
    return reference;
  }

  void flush(std::int32_t pid, std::uint64_t made_by, FlushKind kind = FlushKind::kAtExit) {
    trace.as(pid);
    trace.record(RecordType::kFlush, trace::FlushRecord{unflushed, made_by, 0, kind, 0});
  }

  std::vector<Finding> findings() const { return diagnose(test::read_model(trace)); }

  TraceBuilder trace;
  std::uint64_t fork = 0;
  std::uint64_t unflushed = 0;
};

bool says(const Finding& finding, std::string_view part) {
  for (const std::string& sentence : finding.chain) {
    if (sentence.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(StdioDuplicated, IsCertainIfBothWroteTheBytes) {
  OutputTrace scene;
  scene.flush(test::kChild, scene.fork);
  scene.flush(test::kParent, 0, FlushKind::kClose);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "stdio-duplicated");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kCorruption);
  EXPECT_EQ(findings[0].tid, test::kChild);
  EXPECT_EQ(findings[0].culprit.name, "15 bytes of stdout");
  EXPECT_NE(findings[0].summary.find("come out twice"), std::string::npos) << findings[0].summary;
  EXPECT_TRUE(says(findings[0], "They begin with \"the job begins\" ..."));
  EXPECT_TRUE(says(findings[0], "by fclose()"));
}

TEST(StdioDuplicated, IsSilentIfOnlyOneProcessWroteTheBytes) {
  OutputTrace child;
  child.flush(test::kChild, child.fork);
  EXPECT_TRUE(child.findings().empty());
  OutputTrace parent;
  parent.flush(test::kParent, 0);
  EXPECT_TRUE(parent.findings().empty());
  EXPECT_TRUE(OutputTrace().findings().empty());
}

TEST(StdioDuplicated, CountsEachProcessOnce) {
  OutputTrace scene;
  scene.flush(test::kChild, scene.fork, FlushKind::kFlush);
  scene.flush(test::kChild, scene.fork, FlushKind::kAtExit);
  EXPECT_TRUE(scene.findings().empty());
}

TEST(StdioDuplicated, IsOneFindingForAllChildren) {
  OutputTrace scene;
  const std::uint64_t second = scene.fork_of(test::kChild + 1);
  scene.flush(test::kChild, scene.fork);
  scene.flush(test::kChild + 1, second, FlushKind::kGone);
  scene.flush(test::kParent, 0);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].processes.size(), 2U);
  EXPECT_NE(findings[0].summary.find("come out 3 times"), std::string::npos) << findings[0].summary;
  EXPECT_TRUE(says(findings[0], "when it wrote more to the stream"));
}

TEST(StdioDuplicated, IsReportedIfTwoSiblingsWroteTheBytes) {
  OutputTrace scene;
  const std::uint64_t second = scene.fork_of(test::kChild + 1);
  scene.flush(test::kChild, scene.fork);
  scene.flush(test::kChild + 1, second);
  EXPECT_EQ(scene.findings().size(), 1U);
}

TEST(StdioDuplicated, NamesOtherStreamsByTheirDescriptor) {
  OutputTrace scene("\x01\x02", -1);
  scene.flush(test::kParent, 0);
  scene.flush(test::kChild, scene.fork);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprit.name, "2 bytes of the stream of file descriptor 1");
  EXPECT_FALSE(says(findings[0], "They begin"));
}

TEST(StdioDuplicated, IgnoresRecordsWithAnUnknownKindOrFork) {
  OutputTrace scene;
  scene.flush(test::kParent, 0, static_cast<FlushKind>(9));
  scene.flush(test::kChild, scene.fork);
  EXPECT_TRUE(scene.findings().empty());
  OutputTrace other;
  other.flush(test::kParent, 0);
  other.flush(test::kChild, 12345);  // 12345 is not the reference of a fork record
  EXPECT_TRUE(other.findings().empty());
}

}  // namespace
}  // namespace forksight
