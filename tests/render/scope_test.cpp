#include "render/scope.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "render/text.hpp"
#include "render/waits.hpp"

namespace forksight::render {
namespace {

model::Process make_process(std::int32_t pid, bool is_asked_about) {
  model::Process process;
  process.pid = pid;
  process.is_asked_about = is_asked_about;
  return process;
}

model::Wait wait_for(std::int32_t pid, model::WaitKind kind, const char* via) {
  model::Wait wait;
  wait.kind = kind;
  wait.call = "a call";
  wait.wakers.push_back({pid, 0, -1, via});
  return wait;
}

// Process 1 is a shell. It waits for process 2, about which the user asked.
model::Model make_shell_and_job() {
  model::Model model;
  model.processes = {make_process(1, false), make_process(2, true)};
  model.processes[0].liveness = model::Liveness::kVictim;
  model.processes[0].waits_for = 1;
  model.processes[0].waits.push_back(wait_for(2, model::WaitKind::kWaitChild, "wait4"));
  return model;
}

TEST(Scope, HasEveryProcessOfARun) {
  model::Model model;
  model.processes = {{}, {}};
  EXPECT_EQ(find_counted(model, {}), (std::vector<bool>{true, true}));
}

TEST(Scope, LeavesOutAnAncestorThatOnlyWaits) {
  const model::Model model = make_shell_and_job();
  EXPECT_EQ(find_counted(model, {}), (std::vector<bool>{false, true}));
  EXPECT_EQ(render_text(model, {}), "forksight: nothing found in 1 process\n");
}

TEST(Scope, HasAnAncestorForWhichTheProcessWaits) {
  model::Model model = make_shell_and_job();
  model.processes[1].waits.push_back(wait_for(1, model::WaitKind::kPipeRead, "pipe"));
  EXPECT_EQ(find_counted(model, {}), (std::vector<bool>{true, true}));
}

TEST(Scope, HasAnAncestorThatCouldEndAWait) {
  model::Model model = make_shell_and_job();
  model::Ender ender;
  ender.pid = 1;
  ender.kind = model::EnderKind::kSignal;
  model::Wait wait;
  wait.enders = {ender};
  model.processes[1].waits.push_back(wait);
  EXPECT_EQ(find_counted(model, {}), (std::vector<bool>{false, true}));
  ender.kind = model::EnderKind::kProcess;
  model.processes[1].waits[0].enders.push_back(ender);
  EXPECT_EQ(find_counted(model, {}), (std::vector<bool>{true, true}));
}

TEST(Scope, HasAParentWhoseThreadsTheForkLost) {
  model::Model model = make_shell_and_job();
  model::Fork fork;
  fork.process = 0;
  fork.child = 1;
  fork.is_inferred = true;
  model.forks.push_back(fork);
  EXPECT_EQ(render_text(model, {}), "forksight: nothing found in 1 process\n");
  model.forks[0].unknown_threads = 1;
  EXPECT_EQ(render_text(model, {}), "forksight: nothing found in 2 processes, 1 fork of a process with threads\n");
}

TEST(Scope, HasWhatAFindingNames) {
  const model::Model model = make_shell_and_job();
  Finding finding;
  finding.process = 1;
  finding.processes = {1};
  EXPECT_EQ(find_counted(model, {finding}), (std::vector<bool>{false, true}));
  finding.culprit.holder.emplace().pid = 1;
  EXPECT_EQ(find_counted(model, {finding}), (std::vector<bool>{true, true}));
  finding.culprit.holder.reset();
  finding.processes = {1, 0};
  EXPECT_EQ(find_counted(model, {finding}), (std::vector<bool>{true, true}));
}

TEST(Scope, ShowsNoWaitOfAShellThatStartedTheJob) {
  model::Model model = make_shell_and_job();
  model.processes[1].waits.push_back({});
  EXPECT_EQ(find_without_finding(model, {}), std::vector<model::ProcessId>{1});
  // An ancestor that reads from the process may be of interest, because the ancestor waits for a result.
  model.processes[0].waits[0].kind = model::WaitKind::kPipeRead;
  EXPECT_EQ(find_without_finding(model, {}), (std::vector<model::ProcessId>{0, 1}));
}

}  // namespace
}  // namespace forksight::render
