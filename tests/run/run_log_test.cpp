#include "collect/run_log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace forksight::collect {
namespace {

namespace fs = std::filesystem;

LoggedProcess stuck_process() {
  LoggedProcess process;
  process.pid = 4711;
  process.ppid = 42;
  process.start_ticks = 0xffffffffffffffff;
  process.comm = "app";
  process.exe = "/opt/a \"b\"/app";
  process.cmdline = {"app", "", "--x=ä"};
  process.liveness = model::Liveness::kDeadButForSignal;
  process.stuck_for_ms = 1234;
  process.waits_for_pid = 4712;
  process.waits_for_start_ticks = 99;
  process.waits_via = "pipe";
  process.exit_status = 9;
  process.unheard_signals = 0x4000;
  process.unheard_for_ms = 2100;
  process.may_be_timed_out = true;
  process.went_on = {4711, 4800};
  model::Wait wait;
  wait.tid = 4711;
  wait.name = "w\x01";
  wait.kind = model::WaitKind::kFutex;
  wait.object = 0xffff800000001000;
  wait.target_pid = -1;
  wait.has_timeout = true;
  wait.is_shared = true;
  wait.state = 'S';
  wait.use = model::FutexUse::kMutex;
  wait.owner = 4800;
  wait.owner_is_gone = true;
  wait.readers = 3;
  wait.mutex_type = model::MutexType::kRecursive;
  wait.fd = 7;
  wait.path = "/dev/shm/jobs";
  wait.object_module = "/opt/app";
  wait.module_bias = 0x55d0c0000000;
  wait.object_name = "queue_ready";
  model::Frame frame;
  frame.function = "take";
  frame.module = "/opt/app";
  frame.file = "/src/queue.cpp";
  frame.line = 12;
  wait.stack.frames = {frame};
  wait.stack.cut = true;
  wait.call = "in a futex without a timeout";
  wait.target = "the mutex queue_mutex";
  wait.for_ms = 1200;
  wait.are_enders_known = true;
  model::Ender holder;
  holder.pid = 4712;
  holder.tid = 4713;
  holder.fd = 5;
  holder.via = "pipe";
  holder.command = "app --worker";
  holder.state = 'T';
  holder.is_frozen = true;
  holder.may_have_written = false;
  model::Ender timer;
  timer.kind = model::EnderKind::kTimer;
  timer.what = "its time limit";
  timer.in_ms = 0;
  wait.enders = {holder, timer};
  wait.wakers_known = true;
  wait.wakers = {{4712, 4800, 9, "mutex"}};
  wait.is_stuck = true;
  wait.may_be_cancelled = true;
  process.waits = {wait};
  return process;
}

RunLog sample_log() {
  RunLog log;
  log.command = {"python", "train.py"};
  log.started_at = "2026-11-21T08:00:00+0000";
  log.host = "node3";
  log.limits = {"one thing was not seen"};
  LoggedProcess target;
  target.pid = 4712;
  target.start_ticks = 99;
  target.liveness = model::Liveness::kDead;
  log.processes = {stuck_process(), target};
  log.ends = {{4712, 99, 0x1'0000'0000}, {5000, 1, 5}};
  return log;
}

TEST(RunLog, SurvivesTheRoundTrip) {
  const auto read = parse_run_log(to_json(sample_log()));
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(to_json(read.value()), to_json(sample_log()));
  const LoggedProcess& process = read->processes.at(0);
  EXPECT_EQ(process.start_ticks, 0xffffffffffffffffU);
  EXPECT_EQ(process.cmdline, stuck_process().cmdline);
  EXPECT_EQ(process.liveness, model::Liveness::kDeadButForSignal);
  EXPECT_EQ(process.exit_status, 9);
  EXPECT_EQ(process.unheard_signals, 0x4000U);
  EXPECT_EQ(process.unheard_for_ms, 2100U);
  ASSERT_EQ(process.waits.size(), 1U);
  EXPECT_EQ(process.waits[0].object, 0xffff800000001000U);
  EXPECT_EQ(process.waits[0].state, 'S');
  EXPECT_EQ(process.waits[0].use, model::FutexUse::kMutex);
  EXPECT_EQ(process.waits[0].module_bias, 0x55d0c0000000U);
  ASSERT_EQ(process.waits[0].wakers.size(), 1U);
  EXPECT_EQ(process.waits[0].wakers[0].tid, 4800);
  EXPECT_EQ(process.waits[0].wakers[0].via, "mutex");
  EXPECT_TRUE(process.waits[0].is_stuck);
  EXPECT_TRUE(process.waits[0].may_be_cancelled);
  EXPECT_TRUE(process.may_be_timed_out);
  EXPECT_EQ(process.went_on, (std::vector<std::int32_t>{4711, 4800}));
  EXPECT_FALSE(read->processes.at(1).may_be_timed_out);
  EXPECT_EQ(process.waits[0].target, "the mutex queue_mutex");
  EXPECT_EQ(process.waits[0].for_ms, 1200U);
  ASSERT_EQ(process.waits[0].enders.size(), 2U);
  EXPECT_EQ(process.waits[0].enders[0].command, "app --worker");
  EXPECT_FALSE(process.waits[0].enders[0].may_have_written);
  EXPECT_EQ(process.waits[0].enders[1].kind, model::EnderKind::kTimer);
  EXPECT_EQ(process.waits[0].enders[1].in_ms, 0U);
  EXPECT_FALSE(read->processes.at(1).exit_status);
  ASSERT_EQ(read->ends.size(), 2U);
  EXPECT_EQ(read->ends[0].gone_ns, 0x1'0000'0000U);
}

TEST(RunLog, NamesThatAreNoTextAreReplacedNotFatal) {
  RunLog log = sample_log();
  log.processes[0].comm = "\xff\xfe";
  EXPECT_TRUE(parse_run_log(to_json(log)));
}

TEST(RunLog, RefusesEveryCut) {
  const std::string whole = to_json(sample_log());
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    ASSERT_FALSE(parse_run_log(std::string_view(whole).substr(0, length))) << length;
  }
}

TEST(RunLog, RefusesMalformedDocuments) {
  const std::string head = R"({"schema":"forksight-run/1",)";
  const std::string bad[] = {
      "",
      "[]",
      "null",
      R"({"schema":"forksight-run/2"})",
      R"({"schema":7})",
      R"({})",
      head + R"("command":"ls"})",
      head + R"("command":[1]})",
      head + R"("processes":{}})",
      head + R"("processes":[7]})",
      head + R"("processes":[{}]})",
      head + R"("processes":[{"pid":0,"liveness":"dead"}]})",
      head + R"("processes":[{"pid":-5,"liveness":"dead"}]})",
      head + R"("processes":[{"pid":99999999999,"liveness":"dead"}]})",
      head + R"("processes":[{"pid":1.5,"liveness":"dead"}]})",
      head + R"("processes":[{"pid":"1","liveness":"dead"}]})",
      head + R"("processes":[{"pid":1,"liveness":"undead"}]})",
      head + R"("processes":[{"pid":1}]})",
      head + R"("processes":[{"pid":1,"liveness":"dead","start_ticks":-1}]})",
      head + R"("processes":[{"pid":1,"liveness":"dead","exit_status":"9"}]})",
      head + R"("processes":[{"pid":1,"liveness":"dead","waits":[{"kind":"nap"}]}]})",
      head + R"("processes":[{"pid":1,"liveness":"dead","waits":[{"kind":"futex","object":"zz"}]}]})",
      head + R"("processes":[{"pid":1,"liveness":"dead","waits":[{"kind":"futex","object":"0x10000000000000000"}]}]})",
      head + R"("processes":[{"pid":1,"liveness":"dead","waits":[{"kind":"futex","is_shared":1}]}]})",
      head + R"("ends":[{"pid":0,"gone_ns":1}]})",
      head + R"("ends":[{"pid":1,"gone_ns":-1}]})",
      head + R"("host":")" + std::string(100'000, 'h') + R"("})",
      std::string(100'000, '['),
      head + R"("limits":)" + std::string(5000, '[') + std::string(5000, ']') + "}",
  };
  for (const std::string& text : bad) EXPECT_FALSE(parse_run_log(text)) << text.substr(0, 120);
}

class RunLogFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "forksight-run-log-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(RunLogFile, IsReplacedAsAWhole) {
  ASSERT_TRUE(write_run_log(folder_, RunLog{}));
  const auto written = write_run_log(folder_, sample_log());
  ASSERT_TRUE(written);
  EXPECT_EQ(written.value(), folder_ / "run.json");
  const auto read = read_run_log(written.value());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->host, "node3");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(RunLogFile, NoControlCharacterIsWrittenAsItIs) {
  RunLog log;
  log.command = {"a\x1b\x7f\u009b\u2028"};
  const std::string text = to_json(log);
  EXPECT_NE(text.find("a\\u001b\\u007f\\u009b\\u2028"), std::string::npos) << text;
  const auto read = parse_run_log(text);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->command, log.command);
}

TEST_F(RunLogFile, IsWrittenIntoTheFolderOfTheDescriptor) {
  const int fd = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_TRUE(write_run_log("/none", RunLog{}, fd));
  ::close(fd);
  EXPECT_TRUE(read_run_log(folder_ / "run.json"));
}

TEST_F(RunLogFile, ErrorsNameTheFile) {
  const auto missing = read_run_log(folder_ / "run.json");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().find("run.json"), std::string::npos);
  EXPECT_FALSE(write_run_log(folder_ / "none", RunLog{}));
}

TEST(RunLogBudget, OneFileMayTakeAll) {
  const RunLogBudget budget(1);
  EXPECT_EQ(budget.most(), largest_run_log());
}

TEST(RunLogBudget, LargeFilesLeaveRoomForOthers) {
  const auto processes = [](const RunLogCosts& costs) { return of(costs, RunLogCost::kProcesses); };
  const std::size_t all = processes(largest_run_log());
  RunLogBudget budget(4);
  std::size_t taken = 0;
  for (int file = 0; file < 4; ++file) {
    const RunLogCosts most = budget.most();
    EXPECT_GE(processes(most), all / 8);
    EXPECT_LE(processes(most), all * 3 / 8);
    taken += processes(most);
    budget.count(most);
  }
  EXPECT_LE(taken, all);
}

TEST(RunLogBudget, ALogThatHasMoreIsRefused) {
  const std::string text = to_json(sample_log());
  const auto log = parse_run_log(text);
  ASSERT_TRUE(log);
  EXPECT_EQ(of(log->costs, RunLogCost::kBytes), text.size());
  EXPECT_TRUE(parse_run_log(text, log->costs));
  for (const RunLogCost cost : {RunLogCost::kItems, RunLogCost::kRows, RunLogCost::kWaits, RunLogCost::kProcesses}) {
    RunLogCosts less = log->costs;
    ASSERT_GT(of(less, cost), 0U);
    --of(less, cost);
    EXPECT_FALSE(parse_run_log(text, less)) << static_cast<int>(cost);
  }
}

TEST(MergeRunLog, AddsProcessesWithoutATrace) {
  model::Model model;
  merge_run_log(model, sample_log());
  ASSERT_EQ(model.processes.size(), 2U);
  EXPECT_EQ(model.command, sample_log().command);
  EXPECT_EQ(model.limits.size(), 1U);
  EXPECT_EQ(model.processes[0].liveness, model::Liveness::kDeadButForSignal);
  ASSERT_TRUE(model.processes[0].waits_for);
  EXPECT_EQ(*model.processes[0].waits_for, 1U);
  EXPECT_EQ(model.processes[0].host, "node3");
}

TEST(MergeRunLog, ASecondMergeChangesNothing) {
  model::Model model;
  merge_run_log(model, sample_log());
  merge_run_log(model, sample_log());
  EXPECT_EQ(model.processes.size(), 2U);
  EXPECT_EQ(model.limits.size(), 1U);
}

model::Process traced(std::int32_t pid, std::uint64_t start_ticks, const std::string& host) {
  model::Process process;
  process.pid = pid;
  process.start_ticks = start_ticks;
  process.host = host;
  process.rank = 3;
  return process;
}

TEST(MergeRunLog, FillsTheProcessOfATrace) {
  model::Model model;
  model.processes = {traced(4712, 0, "node3"), traced(4711, 0xffffffffffffffff, "node3")};
  merge_run_log(model, sample_log());
  ASSERT_EQ(model.processes.size(), 2U);
  EXPECT_EQ(model.processes[0].start_ticks, 99U);
  EXPECT_EQ(model.processes[0].liveness, model::Liveness::kDead);
  EXPECT_EQ(model.processes[1].stuck_for_ms, 1234U);
  EXPECT_EQ(model.processes[1].unheard_signals, 0x4000U);
  EXPECT_EQ(model.processes[1].unheard_for_ms, 2100U);
  EXPECT_EQ(model.processes[1].rank, 3);
  EXPECT_EQ(model.processes[1].waits_for, 0U);
  EXPECT_EQ(model.processes[0].seen_ended_ns, 0x1'0000'0000U);
  EXPECT_EQ(model.processes[1].seen_ended_ns, 0U);
  EXPECT_FALSE(model.processes[1].is_unreadable);
}

TEST(MergeRunLog, KeepsThatTheKernelRefusedALook) {
  RunLog log = sample_log();
  for (LoggedProcess& process : log.processes) process.is_unreadable = true;
  const auto read = parse_run_log(to_json(log));
  ASSERT_TRUE(read) << read.error();
  model::Model model;
  merge_run_log(model, read.value());
  for (const model::Process& process : model.processes) EXPECT_TRUE(process.is_unreadable);
}

TEST(MergeRunLog, RecognisesAProcessThatCalledExec) {
  const auto has_execed = [](const std::string& traced_exe, std::uint64_t traced_shim, const std::string& seen_exe,
                             std::optional<std::uint64_t> seen_shim) {
    model::Model model;
    model.processes = {traced(4711, 5, "node3")};
    model.processes[0].exe = traced_exe;
    model.processes[0].shim_start = traced_shim;
    RunLog log;
    log.host = "node3";
    log.processes = {stuck_process()};
    log.processes[0].start_ticks = 5;
    log.processes[0].exe = seen_exe;
    log.processes[0].shim_start = seen_shim;
    const auto read = parse_run_log(to_json(log));
    merge_run_log(model, read.value());
    merge_run_log(model, read.value());
    return model.processes[0].has_execed;
  };
  EXPECT_FALSE(has_execed("/opt/app", 0x7000, "/opt/app", 0x7000));
  EXPECT_TRUE(has_execed("/opt/app", 0x7000, "/bin/sleep", std::nullopt));
  EXPECT_TRUE(has_execed("/opt/app", 0x7000, "/opt/app", 0x8000)) << "the program called exec with its own path";
  EXPECT_TRUE(has_execed("/opt/app", 0x7000, "/opt/app", 0)) << "the new program has no shim";
  EXPECT_FALSE(has_execed("/opt/app", 0x7000, "/opt/app", std::nullopt));
  EXPECT_FALSE(has_execed("/opt/app", 0x7000, "", std::nullopt));
  EXPECT_FALSE(has_execed("/opt/app", 0, "/opt/app", 0x8000));
  EXPECT_FALSE(has_execed("/app", 0x7000, "/var/chroot/app", 0x7000))
      << "the trace has the path inside the root folder of the process";
  EXPECT_FALSE(has_execed("/opt/app (deleted)", 0x7000, "/opt/app", 0x7000));
  EXPECT_FALSE(has_execed("/opt/very-lo", 0x7000, "/opt/very-long/app", 0x7000)) << "the path in the trace is cut off";
}

TEST(MergeRunLog, DropsHandlerRunsOfAnEarlierImage) {
  for (const std::uint64_t seen_shim : {0x7000U, 0x8000U}) {
    model::Model model;
    model.processes = {traced(4711, 0, "node3")};
    model.processes[0].shim_start = 0x7000;
    model.handler_runs.emplace_back();
    RunLog log = sample_log();
    log.processes = {log.processes[0]};
    log.processes[0].pid = 4711;
    log.processes[0].exe.clear();
    log.processes[0].shim_start = seen_shim;
    merge_run_log(model, log);
    EXPECT_EQ(model.handler_runs.size(), seen_shim == 0x7000U ? 1U : 0U);
  }
}

TEST(MergeRunLog, KeepsHostsAndReusedPidsApart) {
  model::Model model;
  model.processes = {traced(4711, 0, "node4"), traced(4711, 5, "node3"), traced(4712, 99, "node3")};
  merge_run_log(model, sample_log());
  ASSERT_EQ(model.processes.size(), 4U);
  EXPECT_EQ(model.processes[0].liveness, model::Liveness::kUnknown);
  EXPECT_EQ(model.processes[1].liveness, model::Liveness::kUnknown);
  EXPECT_EQ(model.processes[2].liveness, model::Liveness::kDead);
  EXPECT_EQ(model.processes[3].liveness, model::Liveness::kDeadButForSignal);
  EXPECT_EQ(model.processes[3].waits_for, 2U);
}

}  // namespace
}  // namespace forksight::collect
