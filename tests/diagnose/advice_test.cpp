#include "diagnose/advice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

model::Stack native_stack(std::string_view function, std::string_view module) {
  model::Frame frame;
  frame.function = function;
  frame.module = module;
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

// A child that hangs, and its parent, which is awake.
model::Model family() {
  model::Model model = model_of({dead_process(2000, {}), dead_process(1000, {})});
  model.processes[0].ppid = 1000;
  model.processes[1].liveness = model::Liveness::kAwake;
  return model;
}

Finding finding_of(const model::Stack& stack, std::string_view rule) {
  Finding finding = finding_of("");
  finding.stack = stack;
  finding.rule = rule;
  return finding;
}

std::vector<std::string> advise(Finding finding, const model::Model& model = family()) {
  Advisor(model).add_advice(finding);
  std::vector<std::string> texts;
  for (const Fix& fix : finding.fixes) texts.push_back(fix.text);
  return texts;
}

constexpr char kPool[] = "/usr/lib/python3.11/multiprocessing/pool.py";

TEST(Advice, SaysWhatEachFrameworkDoesOnceItsWorkerIsEnded) {
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
      {"/usr/lib/python3.11/asyncio/base_events.py", "a task in process 1000 that waits", "create_subprocess_exec()"},
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

TEST(Advice, RecognisesFrameworksByNativeFrames) {
  struct Case {
    model::Stack stack;
    const char* rule;
    const char* then;
    const char* remedy;
  };
  const Case cases[] = {
      {native_stack("uwsgi_worker_run", "/usr/bin/uwsgi-core"), "orphaned-mutex", "uWSGI's master, process 1000",
       "lazy-apps"},
      {native_stack("Rf_eval", "/usr/lib/R/lib/libR.so"), "lost-openmp-pool", "mclapply() in process 1000",
       "makeCluster()"},
      {native_stack("rb_vm_exec", "/usr/lib/libruby-3.1.so.3.1.2"), "lost-blas-pool", "Process.wait in process 1000",
       "Process.spawn"},
      {native_stack("std::__atomic_futex_unsigned_base::_M_futex_wait_until", "/usr/lib/libstdc++.so.6"), "lost-wakeup",
       "waitpid() in process 1000", "std::async"},
  };
  for (const Case& one : cases) {
    const auto texts = advise(finding_of(one.stack, one.rule));
    ASSERT_EQ(texts.size(), 3U) << one.rule;
    EXPECT_NE(texts[0].find(one.then), std::string::npos) << texts[0];
    EXPECT_NE(texts[1].find(one.remedy), std::string::npos) << texts[1];
  }
}

// gunicorn, Celery, uWSGI and asyncio do not start their workers by multiprocessing. So the start method of
// multiprocessing has no effect on these workers.
TEST(Advice, AServerThatForksItsWorkersItselfGetsNoAdviceAboutMultiprocessing) {
  const auto has_advice = [](const model::Stack& stack) {
    Finding finding = finding_of(stack, "python-lock-orphaned");
    finding.fixes = {
        {"Start workers with multiprocessing.set_start_method(\"forkserver\") or \"spawn\": they begin without locks.",
         true},
        {"In Python, start workers with multiprocessing.set_start_method(\"forkserver\").", true}};
    const std::vector<std::string> texts = advise(finding);
    return std::ranges::any_of(
        texts, [](const std::string& text) { return text.find("tart workers with") != std::string::npos; });
  };
  EXPECT_FALSE(has_advice(stack_of("/usr/lib/python3/dist-packages/gunicorn/arbiter.py")));
  EXPECT_FALSE(has_advice(stack_of("/usr/lib/python3/dist-packages/celery/concurrency/prefork.py")));
  EXPECT_FALSE(has_advice(stack_of("/usr/lib/python3.11/asyncio/base_events.py")));
  EXPECT_FALSE(has_advice(native_stack("uwsgi_cycle", "/usr/bin/uwsgi-core")));
  EXPECT_TRUE(has_advice(stack_of(kPool)));
  EXPECT_TRUE(has_advice(stack_of("/srv/jobs.py")));
}

TEST(Advice, PyTorchMayUseOneThreadInTheChild) {
  constexpr std::string_view kRemedy = "torch.set_num_threads(1)";
  model::Model model = family();
  model.processes[0].exe = "/usr/bin/python3.11";
  Finding finding = finding_of(native_stack("at::sum", "/usr/lib/libtorch_cpu.so.1.13"), "lost-openmp-pool");
  finding.fork->stack = stack_of(kPool);
  Finding advised = finding;
  Advisor(model).add_advice(advised);
  ASSERT_EQ(advised.fixes.size(), 4U);
  EXPECT_NE(advised.fixes[1].text.find("multiprocessing.get_context"), std::string::npos) << advised.fixes[1].text;
  EXPECT_NE(advised.fixes[2].text.find(kRemedy), std::string::npos) << advised.fixes[2].text;
  EXPECT_TRUE(advised.fixes[2].verified);
  finding.rule = "orphaned-mutex";
  EXPECT_EQ(advise(finding, model).size(), 3U) << "the child does not wait for a pool";
  finding.rule = "lost-openmp-pool";
  EXPECT_EQ(advise(finding, family()).size(), 3U) << "a program in C++ has no torch.set_num_threads";
}

TEST(Advice, AdviceAboutFuturesIsOnlyForLostWakeups) {
  const model::Stack stack =
      native_stack("std::__atomic_futex_unsigned_base::_M_futex_wait_until", "/usr/lib/libstdc++.so.6");
  EXPECT_EQ(advise(finding_of(stack, "orphaned-mutex")).size(), 2U);
  model::Model model = family();
  model.processes[0].exe = "/usr/bin/python3.11";
  EXPECT_EQ(advise(finding_of(stack, "lost-wakeup"), model).size(), 2U) << "a program in Python has no std::async";
}

TEST(Advice, IsMarkedAsTestedOnlyForTheRuleOfItsCase) {
  Finding finding = finding_of(kPool);
  finding.rule = "python-lock-orphaned";
  const model::Model model = family();
  const Advisor advisor(model);
  advisor.add_advice(finding);
  EXPECT_FALSE(finding.fixes[0].verified) << "the advice to end a process must not be marked as tested";
  EXPECT_TRUE(finding.fixes[1].verified);
  finding = finding_of(kPool);
  advisor.add_advice(finding);
  EXPECT_FALSE(finding.fixes[1].verified) << "no test case tries this advice for the rule " << finding.rule;
}

// Returns a model in which the parent waits for its child to end. The model itself contains no pipe. The test below
// adds a finding of the rule pipe-deadlock. This finding stands for a child that writes into a full pipe.
model::Model full_pipe(std::string_view file) {
  model::Model model = family();
  model.processes[1].liveness = model::Liveness::kDead;
  model::Wait wait;
  wait.kind = model::WaitKind::kWaitChild;
  wait.stack = stack_of(file);
  model::Waker child;
  child.pid = 2000;
  wait.wakers = {child};
  model.processes[1].waits = {wait};
  return model;
}

TEST(Advice, AFullPipeOfSubprocess) {
  Finding finding = finding_of("");
  finding.rule = "pipe-deadlock";
  finding.fork.reset();
  finding.processes = {0, 1};
  const auto texts = advise(finding, full_pipe("/usr/lib/python3.11/subprocess.py"));
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_NE(texts[0].find("end process 2000 (kill -9 2000): Popen.wait() in process 1000"), std::string::npos)
      << texts[0];
  EXPECT_NE(texts[1].find("communicate()"), std::string::npos) << texts[1];
  const std::vector<std::string> without = {
      "Now: end one of the processes 2000, 1000 (kill -9 PID). Its work is lost. The others may then go on.",
      "Another."};
  EXPECT_EQ(advise(finding, full_pipe("/srv/jobs.py")), without)
      << "the program does not wait in the Python module subprocess";
  model::Model model = full_pipe("/usr/lib/python3.11/subprocess.py");
  model.processes[1].waits[0].kind = model::WaitKind::kPipeRead;
  EXPECT_EQ(advise(finding, model), without)
      << "the parent reads from a pipe, so it does not wait for the end of its child";
  model = full_pipe("/usr/lib/python3.11/subprocess.py");
  model.processes[0].ppid = 1;
  EXPECT_EQ(advise(finding, model), without) << "process 2000 is not a child of process 1000";
}

TEST(Advice, AFrameworkComesBeforeTheLibraryThatItUses) {
  Finding finding = finding_of("/usr/lib/python3.11/multiprocessing/process.py");
  finding.fork->stack = stack_of("/venv/torch/utils/data/dataloader.py");
  EXPECT_NE(advise(finding)[0].find("DataLoader"), std::string::npos);
}

TEST(Advice, AdvisesToEndOnlyAProcessThatExistsAndHangs) {
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

TEST(Advice, WithoutTheParentSaysOnlyThatTheWorkIsLost) {
  constexpr char kLost[] = "Now: end process 2000 (kill -9 2000). Its work is lost.";
  model::Model model = family();
  model.processes[0].ppid = 1;
  EXPECT_EQ(advise(finding_of(kPool), model)[0], kLost) << "the parent has ended";
  model = family();
  model.processes[1].exit_status = 0;
  EXPECT_EQ(advise(finding_of(kPool), model)[0], kLost);
  model = family();
  model.processes.pop_back();
  EXPECT_EQ(advise(finding_of(kPool), model)[0], kLost);
}

TEST(Advice, OtherHangsGetNoAdviceAboutAFramework) {
  const auto is_told_to_end = [](const Finding& finding) {
    const auto texts = advise(finding);
    return texts.size() == 2 && texts[0] == "Now: end process 2000 (kill -9 2000). Its work is lost." &&
           texts[1] == "Another.";
  };
  EXPECT_TRUE(is_told_to_end(finding_of("/srv/u/pool.py")));
  Finding finding = finding_of(kPool);
  finding.rule = "pipe-deadlock";
  EXPECT_TRUE(is_told_to_end(finding));
  finding = finding_of(kPool);
  finding.fork->child = 3000;  // this is not the process that hangs
  EXPECT_TRUE(is_told_to_end(finding));
  finding = finding_of(kPool);
  finding.fork.reset();
  EXPECT_TRUE(is_told_to_end(finding));
  finding = finding_of(kPool);
  finding.outcome = Outcome::kError;
  EXPECT_EQ(advise(finding).size(), 1U) << "the process does not hang";
  finding = finding_of(kPool);
  finding.outcome = Outcome::kMayHang;
  finding.harm = Certainty::kLikely;
  finding.fork.reset();
  EXPECT_EQ(advise(finding)[0],
            "Now: if you know that this wait lasts for ever, end process 2000 (kill -9 2000). Its work is lost.");
  finding.harm = Certainty::kPossible;
  EXPECT_EQ(advise(finding).size(), 1U) << "the process may be healthy";
}

TEST(Advice, SaysWhichProcessWaitsForTheEnd) {
  model::Model model = family();
  model.processes[1].waits_for = model::ProcessId{0};
  model.processes[1].waits_via = "wait4";
  const std::string expected =
      "Now: end process 2000 (kill -9 2000). Its work is lost. Process 1000 waits for process 2000 to end, and then "
      "goes on.";
  EXPECT_EQ(advise(finding_of("/srv/u/pool.py"), model)[0], expected);
  model.processes[1].waits_via = "pipe";
  EXPECT_EQ(advise(finding_of("/srv/u/pool.py"), model)[0], "Now: end process 2000 (kill -9 2000). Its work is lost.");
}

Finding finding_of_two(std::string_view file) {
  Finding finding = finding_of(file);
  finding.processes = {0, 2};
  return finding;
}

TEST(Advice, AdvisesToEndAllProcessesThatHangIndependently) {
  model::Model model = family();
  model.processes.push_back(model.processes[0]);
  model.processes[2].pid = 2001;
  Finding finding = finding_of(kPool);
  finding.processes = {0, 2};
  auto texts = advise(finding, model);
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_TRUE(texts[0].starts_with(
      "Now: end processes 2000, 2001 (kill -9 2000 2001). For each of them: the Pool in process 1000 "
      "then starts another worker"))
      << texts[0];
  EXPECT_EQ(advise(finding_of_two("/srv/u/pool.py"), model)[0],
            "Now: end processes 2000, 2001 (kill -9 2000 2001). Their work is lost.");
  model.processes[2].ppid = 1;
  EXPECT_EQ(advise(finding, model)[0], "Now: end processes 2000, 2001 (kill -9 2000 2001). Their work is lost.")
      << "they have different parents";
  finding.rule = "deadlock";
  EXPECT_EQ(advise(finding, model)[0],
            "Now: end one of the processes 2000, 2001 (kill -9 PID). Its work is lost. The others may then go on.");
  finding.count = 2;  // two equal findings, each about one process
  EXPECT_EQ(advise(finding, model)[0], "Now: end processes 2000, 2001 (kill -9 2000 2001). Their work is lost.");
}

}  // namespace
}  // namespace forksight
