// Tests that findings are read back unchanged from JSON, and that a text that is no document of findings is refused.
#include "render/findings_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "diagnose/diagnose.hpp"
#include "render/json.hpp"
#include "render/samples.hpp"

namespace forksight::render {
namespace {

constexpr char kSchema[] = "forksight-test/1";

model::Stack make_stack(const std::string& function, bool is_cut) {
  model::Stack stack;
  stack.frames = {{function, function + ".c", 7, "/lib/x.so", 0xffff'ffff'ffff'ffff, true, false, true},
                  {"", "", 0, "", 0, false, true, false}};
  stack.cut = is_cut;
  return stack;
}

// Findings in which each member differs from its default.
ToldFindings make_told() {
  ToldFindings told;
  told.processes.resize(2);
  told.processes[0].pid = 12;
  told.processes[0].ppid = 11;
  told.processes[0].start_ticks = 345;
  told.processes[0].exe = "/bin/worker";
  told.processes[0].cmdline = {"worker", "", "\xc3\xa4"};
  told.processes[1].pid = 12;
  told.processes[1].host = "node-1";
  told.processes[1].rank = 0;
  Finding& finding = told.findings.emplace_back();
  finding.rule = "lock-cycle";
  finding.harm = Certainty::kLikely;
  finding.cause = Certainty::kProven;
  finding.outcome = Outcome::kError;
  finding.fingerprint = "0123456789abcdef";
  finding.summary = "two threads wait for each other";
  finding.process = 1;
  finding.processes = {1, 0};
  finding.tid = 13;
  finding.thread_name = "pool";
  finding.culprit.kind = CulpritKind::kFileLock;
  finding.culprit.name = "m (mutex)";
  finding.culprit.library = "/lib/y.so";
  finding.culprit.address = 0x8000'0000'0000'0000;
  finding.culprit.holder = Holder{1, 2, "a", "b", "c", "d", true};
  finding.culprit.is_waited_for = true;
  finding.culprit.stack = make_stack("take", true);
  finding.culprit.is_at_fork = true;
  finding.culprit.is_now = true;
  finding.stack = make_stack("wait", false);
  finding.fork = ForkSite{3, 4, make_stack("fork", true)};
  finding.chain = {"one", "two"};
  finding.victims = {{5, "pipe"}};
  finding.fixes = {{"mend it", true}, {"or not", false}};
  finding.odds = Chance{0.125, 0.5};
  finding.count = 3;
  return told;
}

std::string text_of(const ToldFindings& told) { return tell_findings(kSchema, told); }

std::string text_of(const Finding& finding, const std::vector<model::Process>& processes) {
  return json_text([&](JsonWriter& out) { write_finding(out, finding, processes); });
}

TEST(FindingsJson, AreReadBackUnchanged) {
  const ToldFindings told = make_told();
  const auto again = read_findings(kSchema, text_of(told));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(text_of(again.value()), text_of(told));
  // If both the reader and the writer left out a member, the texts would still be equal. So compare the members, too.
  const Finding& finding = again->findings.front();
  EXPECT_EQ(finding.process, 1U);
  EXPECT_EQ(finding.processes, told.findings.front().processes);
  EXPECT_EQ(finding.thread_name, "pool");
  EXPECT_EQ(finding.culprit.address, 0x8000'0000'0000'0000);
  EXPECT_TRUE(finding.culprit.is_waited_for && finding.culprit.is_at_fork && finding.culprit.is_now);
  EXPECT_TRUE(finding.culprit.stack.cut);
  EXPECT_FALSE(finding.stack.cut);
  EXPECT_EQ(finding.culprit.holder->owner, "d");
  EXPECT_EQ(finding.fork->stack.frames.front().offset, 0xffff'ffff'ffff'ffff);
  EXPECT_EQ(finding.fixes.back().text, "or not");
  ASSERT_TRUE(finding.odds);
  EXPECT_EQ(finding.odds->low, 0.125);
  EXPECT_EQ(finding.odds->high, 0.5);
  EXPECT_EQ(finding.count, 3U);
  EXPECT_EQ(again->processes.front().cmdline, told.processes.front().cmdline);
  EXPECT_EQ(again->processes.front().rank, -1);
  EXPECT_EQ(again->processes.back().rank, 0);
}

TEST(FindingsJson, TheNumberOfFurtherVictimsIsThereIfThereAreAny) {
  ToldFindings told = make_told();
  EXPECT_EQ(text_of(told).find("more_victims"), std::string::npos);
  told.findings.front().more_victims = 12;
  const auto again = read_findings(kSchema, text_of(told));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->findings.front().more_victims, 12U);
}

TEST(FindingsJson, EachEnumValueIsReadBack) {
  ToldFindings told = make_told();
  const auto comes_back = [&](auto member, auto last) {
    using Word = decltype(last);
    for (int value = 0; value <= static_cast<int>(last); ++value) {
      member(told.findings.front()) = static_cast<Word>(value);
      const auto again = read_findings(kSchema, text_of(told));
      ASSERT_TRUE(again) << value << ": " << again.error();
      EXPECT_EQ(member(again->findings.front()), static_cast<Word>(value));
    }
  };
  comes_back(
      [](auto& finding) -> auto& { return finding.culprit.kind; }, CulpritKind::kTimer);
  comes_back(
      [](auto& finding) -> auto& { return finding.cause; }, Certainty::kProven);
  comes_back(
      [](auto& finding) -> auto& { return finding.outcome; }, Outcome::kCured);
}

TEST(FindingsJson, AreReadFromEachSampleReport) {
  std::size_t read = 0;
  for (test::Sample& sample : test::all_samples()) {
    SCOPED_TRACE(sample.name);
    const auto findings = diagnose(sample.model);
    const auto again = read_findings(kReportSchema, render_json(sample.model, findings));
    ASSERT_TRUE(again) << again.error();
    ASSERT_EQ(again->processes.size(), sample.model.processes.size());
    ASSERT_EQ(again->findings.size(), findings.size());
    for (std::size_t index = 0; index < findings.size(); ++index, ++read) {
      EXPECT_EQ(text_of(again->findings[index], again->processes), text_of(findings[index], sample.model.processes));
    }
  }
  EXPECT_GE(read, 9U);
}

TEST(FindingsJson, ACutDocumentIsRefused) {
  const std::string whole = text_of(make_told());
  // The last two characters are the closing brace and a newline. A document without the newline is complete.
  for (std::size_t length = 0; length + 2 < whole.size(); ++length)
    EXPECT_FALSE(read_findings(kSchema, whole.substr(0, length)));
  EXPECT_FALSE(read_findings(kSchema, std::string(100'000, '[')));
  EXPECT_FALSE(read_findings(kSchema, "[]"));
}

TEST(FindingsJson, AnInvalidValueIsRefused) {
  const std::string whole = text_of(make_told());
  ASSERT_TRUE(read_findings(kSchema, whole));
  for (const auto& [from, to] : {std::pair{"\"likely\"", "\"perhaps\""},
                                 {"\"likely\"", "\"unknown\""},
                                 {"\"likely\"", "7"},
                                 {"\"harm\"", "\"hang\""},
                                 {"\"pid\": 12", "\"pid\": 99999999999"},
                                 {"\"count\": 3", "\"count\": -1"},
                                 {"\"stack_cut\": true", "\"stack_cut\": 0"},
                                 {"\"host\": \"node-1\"", "\"host\": \"node-2\""},
                                 {"\"findings\": [", "\"findings\": [4, "},
                                 {"forksight-test/1", "forksight-test/2"}}) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    EXPECT_FALSE(read_findings(kSchema, text.replace(at, std::string(from).size(), to))) << from << " " << to;
  }
}

// The document is refused if any one member is missing.
TEST(FindingsJson, EachMemberIsRequired) {
  const auto whole = nlohmann::json::parse(text_of(make_told()));
  const nlohmann::json flat = whole.flatten();
  for (const auto& [path, value] : flat.items()) {
    const nlohmann::json::json_pointer pointer(path);
    nlohmann::json less = whole;
    nlohmann::json& parent = less[pointer.parent_pointer()];
    if (!parent.is_object() || path.starts_with("/findings/0/process/")) continue;
    parent.erase(pointer.back());
    EXPECT_FALSE(read_findings(kSchema, less.dump())) << path;
  }
}

}  // namespace
}  // namespace forksight::render
