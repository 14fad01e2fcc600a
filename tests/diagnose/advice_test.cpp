#include "diagnose/advice.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "dead_process.hpp"

namespace forksight {
namespace {

model::Stack stack_of(std::string_view file) {
  model::Frame frame;
  frame.function = "work";
  frame.file = file;
  frame.line = 1;
  frame.python = true;
  model::Stack stack;
  stack.frames = {frame};
  return stack;
}

Finding finding_of(std::string_view file) {
  Finding finding;
  finding.rule = "orphaned-mutex";
  finding.outcome = Outcome::kHang;
  finding.harm = Certainty::kProven;
  finding.processes = {0};
  finding.fork = ForkSite{1000, 2000, {}};
  finding.stack = stack_of(file);
  finding.fixes = {{"Another.", true}};
  return finding;
}

// The child that hangs, and its parent.
model::Model family() {
  model::Model model = model_of({dead_process(2000, {}), dead_process(1000, {})});
  model.processes[0].ppid = 1000;
  model.processes[1].liveness = model::Liveness::kAwake;
  return model;
}

std::vector<std::string> advise(Finding finding, const model::Model& model = family()) {
  add_framework_advice(model, finding);
  std::vector<std::string> texts;
  for (const Fix& fix : finding.fixes) texts.push_back(fix.text);
  return texts;
}

constexpr char kPool[] = "/usr/lib/python3.11/multiprocessing/pool.py";

TEST(Advice, EachFrameworkSaysWhatItDoesOnceItsWorkerIsEnded) {
  struct Case {
    const char* file;
    const char* then;
    const char* remedy;
  };
  const Case cases[] = {
      {"/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py", "the DataLoader in process 1000 then raises",
       "multiprocessing_context="},
      {"/usr/lib/python3.11/concurrent/futures/process.py", "BrokenProcessPool", "mp_context="},
      {"/usr/lib/python3/dist-packages/gunicorn/arbiter.py", "gunicorn's master, process 1000", "post_fork"},
      {"/usr/lib/python3/dist-packages/celery/concurrency/prefork.py", "WorkerLostError", "worker_process_init"},
      {kPool, "end process 1000, too", ").Pool()"},
      {"/usr/lib/python3.11/multiprocessing/process.py", "join() in process 1000 then returns", ").Process()"},
  };
  for (const Case& one : cases) {
    const auto texts = advise(finding_of(one.file));
    ASSERT_EQ(texts.size(), 3U) << one.file;
    EXPECT_TRUE(texts[0].starts_with("Now: end process 2000 (kill -9 2000): ")) << texts[0];
    EXPECT_NE(texts[0].find(one.then), std::string::npos) << texts[0];
    EXPECT_NE(texts[1].find(one.remedy), std::string::npos) << texts[1];
    EXPECT_EQ(texts[2], "Another.");
  }
}

TEST(Advice, AFrameworkStandsBeforeWhatItIsBuiltOn) {
  Finding finding = finding_of("/usr/lib/python3.11/multiprocessing/process.py");
  finding.fork->stack = stack_of("/venv/torch/utils/data/dataloader.py");
  EXPECT_NE(advise(finding)[0].find("DataLoader"), std::string::npos);
}

TEST(Advice, OnlyAProcessThatIsThereIsToBeEnded) {
  model::Model model = family();
  model.processes[0].killed_by_run = true;
  EXPECT_EQ(advise(finding_of(kPool), model).size(), 2U);
  model = family();
  model.processes[0].is_core = true;
  EXPECT_EQ(advise(finding_of(kPool), model).size(), 2U);
  model = family();
  model.processes[0].liveness = model::Liveness::kAwake;
  EXPECT_EQ(advise(finding_of(kPool), model).size(), 2U);
}

TEST(Advice, WithoutTheParentNobodyStartsAnotherWorker) {
  model::Model model = family();
  model.processes[0].ppid = 1;
  EXPECT_EQ(advise(finding_of(kPool), model).size(), 2U) << "its parent has ended";
  model = family();
  model.processes[1].exit_status = 0;
  EXPECT_EQ(advise(finding_of(kPool), model).size(), 2U);
  model = family();
  model.processes.pop_back();
  EXPECT_EQ(advise(finding_of(kPool), model).size(), 2U);
}

TEST(Advice, OtherFindingsStayAsTheyAre) {
  EXPECT_EQ(advise(finding_of("/srv/u/pool.py")).size(), 1U);
  Finding finding = finding_of(kPool);
  finding.rule = "pipe-deadlock";
  EXPECT_EQ(advise(finding).size(), 1U);
  finding = finding_of(kPool);
  finding.fork->child = 3000;  // not the one that hangs
  EXPECT_EQ(advise(finding).size(), 1U);
  finding = finding_of(kPool);
  finding.fork.reset();
  EXPECT_EQ(advise(finding).size(), 1U);
  finding = finding_of(kPool);
  finding.outcome = Outcome::kError;
  EXPECT_EQ(advise(finding).size(), 1U);
}

}  // namespace
}  // namespace forksight
