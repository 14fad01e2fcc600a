#include "render/job.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace forksight::render {
namespace {

model::Frame frame(const std::string& file, int line) {
  model::Frame made;
  made.file = file;
  made.line = line;
  return made;
}

Finding finding() {
  Finding made;
  made.rule = "orphaned-mutex";
  made.summary = "process 7 waits, 100% sure";
  made.harm = Certainty::kProven;
  made.outcome = Outcome::kHang;
  return made;
}

TEST(Annotations, NameTheInnermostLineOfTheWorkspace) {
  Finding found = finding();
  found.stack.frames = {frame("/usr/include/c++/12/mutex", 9), frame("", 0), frame("/job/src/../src/a,b.cpp", 31),
                        frame("/job/src/main.cpp", 4)};
  EXPECT_EQ(render_annotations({found}, {"/job", "/job/build"}),
            "::error file=src/a%2Cb.cpp,line=31,title=forksight orphaned-mutex::process 7 waits, 100%25 sure\n");
  EXPECT_EQ(render_annotations({found}, {"/jo", "/jo"}),
            "::error title=forksight orphaned-mutex::process 7 waits, 100%25 sure\n");
}

// An annotation uses a relative file name only if that file exists.
TEST(Annotations, FallBackToTheCulprit) {
  namespace fs = std::filesystem;
  const fs::path workspace = fs::path(testing::TempDir()) / ("forksight_job_" + std::to_string(::getpid()));
  fs::create_directories(workspace / "src");
  std::ofstream(workspace / "src" / "lock.py") << "\n";
  Finding found = finding();
  found.stack.frames = {frame("nptl/lowlevellock.c", 42), frame("../../etc/passwd", 1)};
  found.culprit.stack.frames = {frame("lock.py", 8)};
  const std::string wanted = "::error file=src/lock.py,line=8,";
  EXPECT_TRUE(render_annotations({found}, {workspace, workspace / "src"}).starts_with(wanted)) << "as seen from cwd";
  found.culprit.stack.frames = {frame("src/lock.py", 8)};
  EXPECT_TRUE(render_annotations({found}, {workspace, "/"}).starts_with(wanted)) << "as seen from the workspace";
  fs::remove_all(workspace);
  EXPECT_TRUE(render_annotations({found}, {workspace, "/"}).starts_with("::error title="));
}

TEST(Annotations, HaveTheLevelOfTheFinding) {
  Finding possible = finding();
  possible.harm = Certainty::kPossible;
  Finding cured = finding();
  cured.outcome = Outcome::kCured;
  const std::string text = render_annotations({possible, cured}, {"/job", "/job"});
  EXPECT_TRUE(text.starts_with("::warning title=")) << text;
  EXPECT_NE(text.find("\n::notice title="), std::string::npos) << text;
}

TEST(Annotations, NeverBeginASecondCommand) {
  Finding found = finding();
  found.summary = "a\n::add-mask::b\r\n";
  EXPECT_EQ(render_annotations({found}, {"/", "/"}),
            "::error title=forksight orphaned-mutex::a\\x0a::add-mask::b\\x0d\\x0a\n");
  EXPECT_EQ(render_annotation("it ended: 5%"), "::error title=forksight::it ended: 5%25\n");
}

TEST(StepSummary, ShowsTheTextAsItIs) {
  EXPECT_EQ(render_step_summary("the job is stuck", "# one\n\n</div>\x1b[1m\n"),
            "### forksight: the job is stuck\n\n    # one\n    \n    </div>\\x1b[1m\n\n");
  EXPECT_EQ(render_step_summary("it ended", ""), "### forksight: it ended\n\n");
}

TEST(StepSummary, IsCutAtALine) {
  std::string text;
  while (text.size() <= kMostSummary) text += "0123456789\n";
  const std::string section = render_step_summary("long", text);
  EXPECT_NE(section.find("    0123456789\n\nThe rest is in the log of the step.\n"), std::string::npos);
  EXPECT_LT(section.size(), 2 * kMostSummary);
}

TEST(JUnit, HasOneCase) {
  JobCase job{.name = "ctest -R \"a<b\"", .seconds = 1.5, .message = "", .text = ""};
  EXPECT_EQ(render_junit(job),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites name=\"forksight ci\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\" time=\"1.500\">\n"
            "  <testsuite name=\"forksight ci\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\" time=\"1.500\">\n"
            "    <testcase name=\"ctest -R &quot;a&lt;b&quot;\" classname=\"forksight.ci\" time=\"1.500\"/>\n"
            "  </testsuite>\n</testsuites>\n");
  job.state = JobState::kFailed;
  job.message = "it hangs & waits";
  job.text = "one\x1b\n<two>\n";
  const std::string failed = render_junit(job);
  EXPECT_NE(failed.find("failures=\"1\" errors=\"0\""), std::string::npos) << failed;
  EXPECT_NE(failed.find("<failure message=\"it hangs &amp; waits\" type=\"failed\">one\\x1b\n&lt;two&gt;\n</failure>"),
            std::string::npos)
      << failed;
  job.state = JobState::kError;
  EXPECT_NE(render_junit(job).find("failures=\"0\" errors=\"1\""), std::string::npos);
}

}  // namespace
}  // namespace forksight::render
