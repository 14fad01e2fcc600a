// Tests the rule about children that call a libc function whose lock is orphaned. At the fork, a lost thread was inside
// of a libc function and held that lock.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "diagnose/diagnose.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::LibcTrace;
using test::read_model;
using trace::LibcLock;

constexpr std::uint64_t kTimeZone = trace::bit_of(LibcLock::kTimeZone);
constexpr std::uint64_t kLocale = trace::bit_of(LibcLock::kLocale);
constexpr std::uint64_t kMessages = trace::bit_of(LibcLock::kMessages);
constexpr std::uint64_t kLoader = trace::bit_of(LibcLock::kLoader);

std::string chain_of(const Finding& finding) {
  std::string text;
  for (const std::string& sentence : finding.chain) text += sentence + "\n";
  return text;
}

model::Model dead(const LibcTrace& scene) {
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  return model;
}

TEST(LibcLockInFlight, IsCertainIfTheChildIsProvenToHang) {
  LibcTrace scene({"localtime", kTimeZone});
  scene.touch({"mktime", kTimeZone});
  const model::Model model = dead(scene);
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.rule, "libc-lock-in-flight");
  EXPECT_EQ(finding.harm, Certainty::kProven);
  EXPECT_EQ(finding.outcome, Outcome::kHang);
  EXPECT_EQ(finding.culprit.name, "tzset_lock (libc's lock of the time zone)");
  ASSERT_TRUE(finding.culprit.holder.has_value());
  EXPECT_EQ(finding.culprit.holder->tid, test::kHolder);
  EXPECT_EQ(finding.culprit.holder->pid, test::kParent);
  EXPECT_NE(finding.summary.find("hangs in mktime"), std::string::npos) << finding.summary;
  EXPECT_NE(finding.summary.find("inside of localtime"), std::string::npos) << finding.summary;
  EXPECT_FALSE(finding.fixes.empty());
}

TEST(LibcLockInFlight, IsSilentWithoutATouch) {
  EXPECT_TRUE(diagnose(read_model(LibcTrace({"localtime", kTimeZone}).trace)).empty());
}

TEST(LibcLockInFlight, IsSilentIfTheCallReturned) {
  LibcTrace scene({"localtime", kTimeZone});
  scene.end(scene.touch({"mktime", kTimeZone}));
  EXPECT_TRUE(diagnose(read_model(scene.trace)).empty());
}

TEST(LibcLockInFlight, IsSilentIfTheCallWaitsForSomethingElse) {
  LibcTrace scene({"localtime", kTimeZone});
  scene.touch({"mktime", kTimeZone});
  model::Model model = dead(scene);
  model.processes[1].waits = {test::futex_wait(test::kChild)};
  ASSERT_EQ(diagnose(model).size(), 1U);
  model.processes[1].waits[0].kind = model::WaitKind::kPipeRead;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(LibcLockInFlight, IsSilentIfTheFunctionsShareNoLock) {
  LibcTrace scene({"localtime", kTimeZone});
  scene.touch({"setlocale", kLocale});
  for (const Finding& finding : diagnose(dead(scene))) EXPECT_NE(finding.rule, "libc-lock-in-flight");
}

TEST(LibcLockInFlight, IsSilentIfTheChildWasKilledDuringTheCall) {
  LibcTrace scene({"localtime", kTimeZone});
  scene.touch({"mktime", kTimeZone});
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kEnded;
  model.processes[1].exit_status = SIGTERM;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(LibcLockInFlight, IsPossibleIfTheProcessWasNotExamined) {
  LibcTrace scene({"localtime", kTimeZone});
  scene.touch({"mktime", kTimeZone});
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
}

TEST(LibcLockInFlight, IsLikelyIfTheChildSpins) {
  LibcTrace scene({"gettext", kLocale | kMessages});
  scene.touch({"gettext", kLocale | kMessages});
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kSpinning;
  model.processes[1].stuck_for_ms = 1400;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_NE(chain_of(findings[0]).find("share 2 locks"), std::string::npos) << chain_of(findings[0]);
}

TEST(LibcLockInFlight, IsCuredIfTheForkWaitedForTheCall) {
  LibcTrace scene({"localtime", kTimeZone}, trace::kInFlightEnded);
  scene.quiesced(12'000'000, 1, 0);
  scene.end(scene.touch({"localtime", kTimeZone}, trace::kTouchCured));
  const auto findings = diagnose(read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kCured);
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_NE(chain_of(findings[0]).find("waited 12 ms until"), std::string::npos) << chain_of(findings[0]);
}

TEST(LibcLockInFlight, SaysThatTheForkWaitedInVain) {
  LibcTrace scene({"localtime", kTimeZone});
  scene.quiesced(100'000'000, 1, 1);
  scene.touch({"localtime", kTimeZone});
  const auto findings = diagnose(dead(scene));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(chain_of(findings[0]).find("was still inside of such a call"), std::string::npos) << chain_of(findings[0]);
  for (const Fix& fix : findings[0].fixes) EXPECT_FALSE(fix.verified) << fix.text;
}

TEST(LoaderLockOrphaned, BlamesTheDynamicLoader) {
  LibcTrace scene({"dl_iterate_phdr", kLoader});
  scene.touch({"dl_iterate_phdr", kLoader});
  const auto findings = diagnose(dead(scene));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "loader-lock-orphaned");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].culprit.library, "ld-linux-x86-64.so.2");
}

TEST(LibcCalls, UnknownLocksAreIgnored) {
  LibcTrace scene({"newer", std::uint64_t{1} << 63U});
  scene.touch({"newer", std::uint64_t{1} << 63U});
  for (const Finding& finding : diagnose(dead(scene))) EXPECT_NE(finding.rule, "libc-lock-in-flight");
}

}  // namespace
}  // namespace forksight
