// Tests the rules about file locks that a child does not inherit, and about file locks that a child shares with its
// parent.
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::TraceBuilder;
using trace::FileLockEvent;
using trace::FileLockKind;
using trace::RecordType;

constexpr std::uint32_t kByChild = trace::kFileChanged | trace::kWriterKnown | trace::kChildWrote;

// A parent with one thread, which holds a file lock when it forks.
struct FileLockTrace {
  FileLockTrace() {
    trace.as(test::kParent);
    trace::ForkRecord fixed{};
    fixed.ordinal = 1;
    fork = trace.fork(fixed, {}, {});
    trace.record(RecordType::kForked, trace::ForkedRecord{fork, test::kChild, 0, 5});
  }

  void use(std::int32_t pid, FileLockKind kind, FileLockEvent event, std::uint32_t flags = 0, std::int32_t other = 0,
           std::int32_t fd = 3, std::string_view path = "/srv/ledger") {
    const trace::FileLockRecord fixed{
        fork, 0, 0, 0, 100, kind, event, fd, test::kParent, other, flags, static_cast<std::uint32_t>(path.size()), 0};
    std::vector<std::byte> payload(sizeof fixed + path.size());
    std::memcpy(payload.data(), &fixed, sizeof fixed);
    std::memcpy(payload.data() + sizeof fixed, path.data(), path.size());
    trace.as(pid).append(RecordType::kFileLock, payload);
  }
  void unlock(std::uint32_t flags) { use(test::kChild, FileLockKind::kPosix, FileLockEvent::kForeignUnlock, flags); }

  std::vector<Finding> findings() const { return diagnose(test::read_model(trace)); }

  TraceBuilder trace;
  std::uint64_t fork = 0;
};

TEST(FileLockLost, IsLikelyIfOnlyTheChildWrote) {
  FileLockTrace scene;
  scene.unlock(kByChild);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "file-lock-lost");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kCorruption);
  EXPECT_EQ(findings[0].process, 1U);
  EXPECT_EQ(findings[0].culprit.kind, CulpritKind::kFileLock);
  EXPECT_EQ(findings[0].culprit.name, "lock of ledger");
  ASSERT_TRUE(findings[0].fork.has_value());
  EXPECT_EQ(findings[0].fork->child, test::kChild);
  EXPECT_NE(findings[0].chain[0].find("bytes 0 to 99 of /srv/ledger"), std::string::npos) << findings[0].chain[0];
}

TEST(FileLockLost, IsPossibleIfTheWriterIsNotKnown) {
  FileLockTrace scene;
  scene.unlock(trace::kFileChanged);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
}

TEST(FileLockLost, IsSilentIfTheFileIsUnchangedOrAnotherProcessWrote) {
  for (const std::uint32_t flags :
       {0U, static_cast<std::uint32_t>(trace::kWriterKnown | trace::kChildWrote), kByChild | trace::kParentWrote,
        static_cast<std::uint32_t>(trace::kFileChanged | trace::kWriterKnown)}) {
    FileLockTrace scene;
    scene.unlock(flags);
    EXPECT_TRUE(scene.findings().empty()) << flags;
  }
}

TEST(FileLockShared, IsCertainIfAnotherProcessHasTheLock) {
  FileLockTrace scene;
  scene.use(test::kChild, FileLockKind::kFlock, FileLockEvent::kReleased);
  scene.use(test::kParent, FileLockKind::kFlock, FileLockEvent::kMissed, 0, 3000);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "file-lock-shared");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kCorruption);
  EXPECT_EQ(findings[0].process, 1U);
  EXPECT_EQ(findings[0].processes, (std::vector<model::ProcessId>{1, 0}));
  EXPECT_NE(findings[0].summary.find("process 3000 takes it"), std::string::npos) << findings[0].summary;
}

TEST(FileLockShared, IsPossibleIfNoOtherHolderWasSeen) {
  FileLockTrace scene;
  scene.use(test::kChild, FileLockKind::kOfd, FileLockEvent::kReleased);
  scene.use(test::kParent, FileLockKind::kOfd, FileLockEvent::kMissed);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
}

TEST(FileLockShared, IsSilentUnlessTheChildReleasedTheLockAndTheParentMissedIt) {
  FileLockTrace released;
  released.use(test::kChild, FileLockKind::kFlock, FileLockEvent::kReleased);
  EXPECT_TRUE(released.findings().empty());
  FileLockTrace missed;
  missed.use(test::kParent, FileLockKind::kFlock, FileLockEvent::kMissed, 0, 3000);
  EXPECT_TRUE(missed.findings().empty());
}

TEST(FileLockShared, NeedsTheSameDescriptorAndPathAndAnEarlierRelease) {
  FileLockTrace descriptor;
  descriptor.use(test::kChild, FileLockKind::kFlock, FileLockEvent::kReleased);
  descriptor.use(test::kParent, FileLockKind::kFlock, FileLockEvent::kMissed, 0, 3000, 4);
  EXPECT_TRUE(descriptor.findings().empty());
  FileLockTrace path;
  path.use(test::kChild, FileLockKind::kFlock, FileLockEvent::kReleased);
  path.use(test::kParent, FileLockKind::kFlock, FileLockEvent::kMissed, 0, 3000, 3, "/srv/other");
  EXPECT_TRUE(path.findings().empty());
  FileLockTrace later;
  later.use(test::kParent, FileLockKind::kFlock, FileLockEvent::kMissed, 0, 3000);
  later.use(test::kChild, FileLockKind::kFlock, FileLockEvent::kReleased);
  EXPECT_TRUE(later.findings().empty());
}

TEST(FileLocks, RecordsWithAnUnknownKindOrEventAreIgnored) {
  FileLockTrace scene;
  scene.use(test::kChild, static_cast<FileLockKind>(9), FileLockEvent::kReleased);
  scene.use(test::kChild, FileLockKind::kFlock, static_cast<FileLockEvent>(9));
  EXPECT_TRUE(test::read_model(scene.trace).file_lock_uses.empty());
}

}  // namespace
}  // namespace forksight
