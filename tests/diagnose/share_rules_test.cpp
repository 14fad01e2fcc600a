// Tests the rules about epoll instances, connections and random states that several processes use after a fork. Each
// process uses such an object as if it were the only user.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "diagnose/diagnose.hpp"
#include "forksight/trace/shares.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::TraceBuilder;
using trace::Generator;
using trace::RecordType;
using trace::ShareKind;
using trace::ShareUseKind;

constexpr std::int32_t kSecond = test::kChild + 1;

// A parent with one thread, which has an open file when it forks.
struct ShareTrace {
  explicit ShareTrace(ShareKind kind, const void* peer = nullptr, std::uint32_t peer_bytes = 0) {
    trace.as(test::kParent);
    fork = fork_of(test::kChild);
    trace::ShareRecord record{};
    record.fork = fork;
    record.kind = kind;
    record.fd = 3;
    record.owner = test::kParent;
    record.peer_bytes = peer_bytes;
    if (peer != nullptr) std::memcpy(record.peer, peer, std::min<std::size_t>(peer_bytes, sizeof record.peer));
    share = trace.record(RecordType::kShare, record);
  }

  std::uint64_t fork_of(std::int32_t child) {
    trace::ForkRecord fixed{};
    fixed.ordinal = 1;
    const std::uint64_t reference = trace.as(test::kParent).fork(fixed, {}, {});
    trace.record(RecordType::kForked, trace::ForkedRecord{reference, child, 0, 5});
    return reference;
  }

  std::uint64_t use(std::int32_t pid, std::uint64_t made_by, ShareUseKind kind, std::uint32_t flags = 0,
                    std::int32_t fd = 5) {
    trace::ShareUseRecord record{};
    record.share = share;
    record.fork = made_by;
    record.kind = kind;
    record.flags = flags;
    record.target = fd;
    record.mode = S_IFSOCK;
    return trace.as(pid).record(RecordType::kShareUse, record);
  }

  std::vector<Finding> findings() const { return diagnose(test::read_model(trace)); }

  TraceBuilder trace;
  std::uint64_t fork = 0;
  std::uint64_t share = 0;
};

TEST(EpollShared, IsLikelyIfTheOwnerWaitsAfterTheRemoval) {
  ShareTrace scene(ShareKind::kEpoll);
  scene.use(test::kChild, scene.fork, ShareUseKind::kRemoved);
  scene.use(test::kParent, 0, ShareUseKind::kMissed);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "epoll-shared");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_EQ(findings[0].tid, test::kParent);
  EXPECT_EQ(findings[0].culprit.name, "the interest in a socket");
  EXPECT_NE(findings[0].summary.find("descriptor 5 (a socket)"), std::string::npos) << findings[0].summary;
}

TEST(EpollShared, IsLikelyIfTheOwnerWaitedDuringTheRemoval) {
  ShareTrace scene(ShareKind::kEpoll);
  scene.use(test::kChild, scene.fork, ShareUseKind::kRemoved, trace::kOwnerWaits);
  EXPECT_EQ(scene.findings().size(), 1U);
}

TEST(EpollShared, IsALikelyHangIfNothingCanWakeTheOwner) {
  ShareTrace scene(ShareKind::kEpoll);
  scene.use(test::kChild, scene.fork, ShareUseKind::kRemoved, trace::kOwnerWaits);
  model::Model model = test::read_model(scene.trace);
  model.processes[0].liveness = model::Liveness::kDead;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
}

TEST(EpollShared, IsSilentIfTheOwnerDoesNotWait) {
  ShareTrace scene(ShareKind::kEpoll);
  scene.use(test::kChild, scene.fork, ShareUseKind::kRemoved);
  EXPECT_TRUE(scene.findings().empty());
  scene.use(test::kParent, 0, ShareUseKind::kMissed, 0, 6);  // for another descriptor
  EXPECT_TRUE(scene.findings().empty());
}

TEST(EpollShared, GivesOneFindingForEachDescriptor) {
  ShareTrace scene(ShareKind::kEpoll);
  scene.use(test::kChild, scene.fork, ShareUseKind::kRemoved, trace::kOwnerWaits, 5);
  scene.use(test::kChild, scene.fork, ShareUseKind::kRemoved, 0, 6);
  scene.use(test::kParent, 0, ShareUseKind::kMissed, 0, 5);
  scene.use(test::kParent, 0, ShareUseKind::kMissed, 0, 6);
  std::uint64_t count = 0;
  for (const Finding& finding : scene.findings()) count += finding.count;
  EXPECT_EQ(count, 2U);
}

TEST(ConnectionShared, IsLikelyIfTheFirstUserUsesItAgain) {
  ShareTrace scene(ShareKind::kConnection);
  scene.use(test::kChild, scene.fork, ShareUseKind::kSent);
  scene.use(test::kParent, 0, ShareUseKind::kSent);
  scene.use(test::kChild, scene.fork, ShareUseKind::kSent);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "connection-shared");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].outcome, Outcome::kCorruption);
  EXPECT_EQ(findings[0].tid, test::kChild);
  EXPECT_EQ(findings[0].culprit.name, "the connection of descriptor 3");
}

TEST(ConnectionShared, IsPossibleIfItChangedHandsOnce) {
  ShareTrace scene(ShareKind::kConnection);
  scene.use(test::kChild, scene.fork, ShareUseKind::kReceived);
  scene.use(test::kParent, 0, ShareUseKind::kReceived);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
}

TEST(ConnectionShared, IsPossibleIfChildrenUseItOneAfterTheOther) {
  ShareTrace scene(ShareKind::kConnection);
  const std::uint64_t second = scene.fork_of(kSecond);
  scene.use(test::kChild, scene.fork, ShareUseKind::kSent);
  scene.use(test::kParent, 0, ShareUseKind::kSent);
  scene.use(kSecond, second, ShareUseKind::kSent);
  scene.use(test::kParent, 0, ShareUseKind::kSent);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
}

TEST(ConnectionShared, IsLikelyIfTwoSiblingsAlternate) {
  ShareTrace scene(ShareKind::kConnection);
  const std::uint64_t second = scene.fork_of(kSecond);
  scene.use(test::kChild, scene.fork, ShareUseKind::kSent);
  scene.use(kSecond, second, ShareUseKind::kSent);
  scene.use(test::kChild, scene.fork, ShareUseKind::kSent);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].processes.size(), 2U);
}

TEST(ConnectionShared, IsSilentIfOneProcessUsesIt) {
  ShareTrace handed(ShareKind::kConnection);
  handed.use(test::kChild, handed.fork, ShareUseKind::kSent);
  handed.use(test::kChild, handed.fork, ShareUseKind::kReceived);
  EXPECT_TRUE(handed.findings().empty());
  ShareTrace split(ShareKind::kConnection);
  split.use(test::kChild, split.fork, ShareUseKind::kReceived);
  split.use(test::kParent, 0, ShareUseKind::kSent);
  EXPECT_TRUE(split.findings().empty());
}

TEST(ConnectionShared, IsSilentUnderALockThatProcessesShare) {
  ShareTrace scene(ShareKind::kConnection);
  scene.use(test::kChild, scene.fork, ShareUseKind::kSent, trace::kUnderLock);
  scene.use(test::kParent, 0, ShareUseKind::kSent);
  scene.use(test::kChild, scene.fork, ShareUseKind::kSent, trace::kUnderLock);
  EXPECT_TRUE(scene.findings().empty());
}

std::string peer_of(const void* address, std::size_t bytes) {
  ShareTrace scene(ShareKind::kConnection, address, static_cast<std::uint32_t>(bytes));
  const model::Model model = test::read_model(scene.trace);
  return model.shares.size() == 1 ? model.shares[0].peer : "no share";
}

TEST(ConnectionShared, NamesThePeer) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(5432);
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(peer_of(&four, sizeof four), "127.0.0.1:5432");
  EXPECT_EQ(peer_of(&four, 5), "");
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(80);
  six.sin6_addr = in6addr_loopback;
  EXPECT_EQ(peer_of(&six, sizeof six), "[::1]:80");
  sockaddr_un path{};
  path.sun_family = AF_UNIX;
  std::strcpy(path.sun_path, "/run/db.sock");
  EXPECT_EQ(peer_of(&path, 2 + 13), "/run/db.sock");
  EXPECT_EQ(peer_of(&path, 2), "");
  EXPECT_EQ(peer_of(&path, sizeof path), "/run/db.sock")
      << "the address is longer than the part of it that a record keeps";
  path.sun_path[0] = '\0';
  EXPECT_EQ(peer_of(&path, 2 + 4), "@run");
  path.sun_path[1] = '\x1b';
  EXPECT_EQ(peer_of(&path, 2 + 4), "") << "a control character must not reach a terminal";
}

TEST(Shares, UsesHaveStacksOfPython) {
  ShareTrace scene(ShareKind::kConnection);
  const std::uint64_t use = scene.use(test::kChild, scene.fork, ShareUseKind::kSent);
  scene.trace.python(trace::PythonMoment::kTouch,
                     "Stack (most recent call first):\n  File \"/app/job.py\", line 7 in ask\n", test::kChild, use);
  scene.use(test::kParent, 0, ShareUseKind::kSent);
  const model::Stack stack = test::read_model(scene.trace).shares[0].uses[0].stack;
  ASSERT_EQ(stack.frames.size(), 1U);
  EXPECT_EQ(stack.frames[0].function, "ask");
  EXPECT_TRUE(test::read_model(scene.trace).shares[0].uses[1].stack.frames.empty());
}

TEST(Shares, InvalidRecordsAreIgnored) {
  ShareTrace other(ShareKind::kEpoll);
  other.use(test::kChild, other.fork, ShareUseKind::kSent);                    // only connections have this use
  other.use(test::kChild, 12345, ShareUseKind::kRemoved, trace::kOwnerWaits);  // no fork has the record 12345
  other.use(test::kChild, other.fork, static_cast<ShareUseKind>(9));
  EXPECT_TRUE(test::read_model(other.trace).shares[0].uses.empty());
  ShareTrace unknown(static_cast<ShareKind>(7));
  EXPECT_TRUE(test::read_model(unknown.trace).shares.empty());
}

struct DrawTrace : ShareTrace {
  DrawTrace() : ShareTrace(ShareKind::kEpoll), second(fork_of(kSecond)) {}

  void draw(std::int32_t pid, std::uint64_t made_by, std::uint64_t value, Generator generator = Generator::kRandom) {
    trace.as(pid).record(RecordType::kDraw, trace::DrawRecord{made_by, 0, value, generator, 0});
  }

  std::uint64_t second;
};

TEST(RngStateDuplicated, IsPossibleIfTwoChildrenDrawTheSameNumber) {
  DrawTrace scene;
  scene.draw(test::kChild, scene.fork, 1804289383);
  scene.draw(kSecond, scene.second, 1804289383);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "rng-state-duplicated");
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_EQ(findings[0].processes.size(), 2U);
}

TEST(RngStateDuplicated, IsSilentIfTheNumbersDiffer) {
  DrawTrace scene;
  scene.draw(test::kChild, scene.fork, 1804289383);
  scene.draw(kSecond, scene.second, 846930886);
  scene.draw(kSecond, scene.second, 1804289383, Generator::kDrand48);
  scene.draw(test::kChild, scene.fork, 1804289383);  // the same process draws the number again
  scene.draw(test::kChild, scene.fork, 846930886, static_cast<Generator>(9));
  EXPECT_TRUE(scene.findings().empty());
}

}  // namespace
}  // namespace forksight
