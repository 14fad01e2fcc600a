#include "proc/proc_text.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <string>

#include "proc/thread_sample.hpp"

namespace forksight::proc {
namespace {

constexpr char kFutexLine[] = "202 0x55744edad060 0x80 0x2 0x0 0x0 0x0 0x7f5a79b75e98 0x7f5a79c0012b\n";

TEST(ParseSyscall, ReadsNumberArgumentsStackAndCode) {
  const auto call = parse_syscall(kFutexLine);
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->in_syscall);
  EXPECT_FALSE(call->running);
  EXPECT_EQ(call->number, 202);
  EXPECT_EQ(call->args[0], 0x55744edad060U);
  EXPECT_EQ(call->args[1], 0x80U);
  EXPECT_EQ(call->args[2], 2U);
  EXPECT_EQ(call->args[3], 0U);
  EXPECT_EQ(call->sp, 0x7f5a79b75e98U);
  EXPECT_EQ(call->pc, 0x7f5a79c0012bU);
}

// What /proc/PID/syscall of Linux 6.18 shows for poll(fds, 4, -1) after a debugger has stopped the thread for a moment.
constexpr char kRestartedLine[] =
    "219 0x7f8086a72950 0x4 0xffffffff 0x7f80b37f68d0 0x0 0xa563c8 0x7f80915fe910 0x7f80b38e426f\n";

TEST(RestartedCall, OfPollHasItsNameAndArguments) {
  auto call = parse_syscall(kRestartedLine);
  ASSERT_TRUE(call);
  name_restarted(*call, "poll_schedule_timeout.constprop.0");
  EXPECT_EQ(call->number, SYS_poll);
  EXPECT_EQ(call->args[1], 4U);
}

TEST(RestartedCall, OfATimedWaitIsLeftAsItIs) {
  for (const char* function : {"hrtimer_nanosleep", "futex_do_wait", "0", ""}) {
    auto call = parse_syscall(kRestartedLine);
    ASSERT_TRUE(call);
    name_restarted(*call, function);
    EXPECT_EQ(call->number, SYS_restart_syscall) << function;
  }
}

TEST(ParseTimerSignals, TakesEachTimer) {
  EXPECT_EQ(parse_timer_signals("ID: 0\nsignal: 10/0000000000000000\nnotify: signal/pid.7\nClockID: 0\n"
                                "ID: 1\nsignal: 34/0000000000000001\nnotify: thread/tid.9\nClockID: 1\n"),
            1ULL << 9U | 1ULL << 33U);
  EXPECT_EQ(parse_timer_signals(""), 0U);
  EXPECT_EQ(parse_timer_signals("signal: 0/0\nsignal: 65/0\nsignal: x/0\nnotify: signal: 5/0\nsignal: 6"), 0U);
}

TEST(ParseSyscall, KnowsRunning) {
  const auto call = parse_syscall("running\n");
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->running);
  EXPECT_FALSE(call->in_syscall);
}

TEST(ParseSyscall, KnowsBlockedOutsideOfACall) {
  const auto call = parse_syscall("-1 0x7ffe5a4170d0 0x7f5a79bfff16\n");
  ASSERT_TRUE(call);
  EXPECT_FALSE(call->in_syscall);
  EXPECT_EQ(call->sp, 0x7ffe5a4170d0U);
}

TEST(ParseSyscall, RefusesTextsThatAreCutOrMalformed) {
  const std::string whole = kFutexLine;
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    // If the text is cut inside its last number, what is left of the number is still a number. So only a text that is
    // cut earlier must be refused.
    if (length > whole.rfind("0x")) break;
    EXPECT_FALSE(parse_syscall(whole.substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_syscall("running away"));
  EXPECT_FALSE(parse_syscall("202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9"));
  EXPECT_FALSE(parse_syscall("202 0xfffffffffffffffff 0 0 0 0 0 0 0"));
  EXPECT_FALSE(parse_syscall("futex 0 0 0 0 0 0 0 0"));
}

std::string stat_line(const std::string& name) {
  return "4711 (" + name + ") S 42 4711 1 0 -1 4194304 106 0 0 0 7 5 0 0 20 0 2 0 137957 10928128 266\n";
}

TEST(ParseStat, ReadsTheFieldsAfterTheName) {
  for (const std::string name : {"app", "a b", "a) S 1 (b", "", ")", "((("}) {
    const auto stat = parse_stat(stat_line(name));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->pid, 4711);
    EXPECT_EQ(stat->comm, name);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->ppid, 42);
    EXPECT_EQ(stat->cpu_ticks, 12U);
    EXPECT_EQ(stat->start_ticks, 137957U);
  }
}

TEST(ParseStat, AZombieHasNoOtherThreads) {
  std::string line = stat_line("app");
  EXPECT_EQ(parse_stat(line)->threads, 2U);
  EXPECT_FALSE(is_zombie(*parse_stat(line)));
  line.replace(line.find(" S "), 3, " Z ");
  EXPECT_FALSE(is_zombie(*parse_stat(line))) << "only the first thread has ended";
  line.replace(line.find(" 20 0 2 0 "), 10, " 20 0 1 0 ");
  EXPECT_TRUE(is_zombie(*parse_stat(line)));
}

TEST(ParseStat, ReadsTheProcessorIfTheLineHasIt) {
  std::string line = stat_line("app");
  EXPECT_FALSE(parse_stat(line)->processor);
  line.pop_back();
  EXPECT_EQ(parse_stat(line + " 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 63 0\n")->processor, 63U);
}

TEST(ParseStat, RefusesALineThatIsCut) {
  const std::string whole = stat_line("app");
  const std::size_t needed = whole.find(" 137957");
  for (std::size_t length = 0; length <= needed; ++length) EXPECT_FALSE(parse_stat(whole.substr(0, length))) << length;
}

constexpr char kStatus[] =
    "Name:\tapp\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t3821\nPid:\t3823\nTracerPid:\t7\nSigQ:\t0/96365\n"
    "SigPnd:\t0000000000000001\nShdPnd:\t0000000000000002\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000000006\n"
    "SigCgt:\t0000000180000000\nvoluntary_ctxt_switches:\t15\nnonvoluntary_ctxt_switches:\t3\n";

TEST(ParseStatus, ReadsSignalsAndSwitches) {
  const auto status = parse_status(kStatus);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->name, "app");
  EXPECT_EQ(status->state, 'S');
  EXPECT_EQ(status->tracer, 7);
  EXPECT_EQ(status->pending, 1U);
  EXPECT_EQ(status->shared_pending, 2U);
  EXPECT_EQ(status->blocked, 4U);
  EXPECT_EQ(status->caught, 0x180000000U);
  EXPECT_EQ(status->voluntary, 15U);
  EXPECT_EQ(status->nonvoluntary, 3U);
}

TEST(IsEnding, DependsOnStateFlagsAndSignals) {
  Stat stat;
  Status status;
  stat.state = 'S';
  status.pending = 1U << 14U;
  EXPECT_FALSE(is_ending(stat, status)) << "SIGTERM may be blocked";
  status.pending |= 1U << 8U;
  EXPECT_TRUE(is_ending(stat, status)) << "SIGKILL";
  status.pending = 0;
  stat.flags = kForkedWithoutExec | kExiting;
  EXPECT_TRUE(is_ending(stat, status));
  stat.flags = kForkedWithoutExec;
  stat.state = 'Z';
  EXPECT_TRUE(is_ending(stat, status));
}

TEST(ParseStatus, ReadsTheIdInThePidNamespace) {
  EXPECT_EQ(parse_status(kStatus)->ns_depth, 1U) << "this kernel does not report NSpid";
  const auto same = parse_status(std::string(kStatus) + "NSpid:\t3823\n");
  EXPECT_EQ(same->own_tid, 3823);
  EXPECT_EQ(same->ns_depth, 1U);
  const auto inner = parse_status(std::string(kStatus) + "NSpid:\t3823\t17\t5\n");
  EXPECT_EQ(inner->own_tid, 5);
  EXPECT_EQ(inner->ns_depth, 3U);
}

TEST(ParseStatus, RefusesWhenAFieldIsMissing) {
  for (const char* field : {"Name:", "State:", "TracerPid:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigCgt:",
                            "\nvoluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"}) {
    std::string text = kStatus;
    text.replace(text.find(field) + 1, 1, "X");
    EXPECT_FALSE(parse_status(text)) << field;
  }
}

TEST(ParseMapping, DistinguishesPrivateFromShared) {
  const auto heap =
      parse_mapping("55744edac000-55744edcd000 rw-p 00003000 fe:00 10952775                   /tmp/a b\n");
  ASSERT_TRUE(heap);
  EXPECT_EQ(heap->start, 0x55744edac000U);
  EXPECT_EQ(heap->end, 0x55744edcd000U);
  EXPECT_TRUE(heap->writable);
  EXPECT_FALSE(heap->shared);
  EXPECT_EQ(heap->path, "/tmp/a b");
  const auto shared = parse_mapping("7f0000000000-7f0000001000 rw-s 00000000 00:01 5 /dev/zero (deleted)");
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->shared);
  EXPECT_FALSE(parse_mapping("7f0000001000-7f0000000000 rw-p 0 0:0 0"));
  EXPECT_FALSE(parse_mapping("7f0000000000 rw-p 0 0:0 0"));
  EXPECT_FALSE(parse_mapping(""));
}

TEST(ParsePipeLink, TakesAnonymousPipesOnly) {
  EXPECT_EQ(parse_pipe_link("pipe:[81234]"), 81234U);
  EXPECT_FALSE(parse_pipe_link("socket:[81234]"));
  EXPECT_FALSE(parse_pipe_link("/tmp/fifo"));
  EXPECT_FALSE(parse_pipe_link("pipe:[]"));
  EXPECT_FALSE(parse_pipe_link("pipe:[12"));
}

TEST(ParsePids, LeavesOutWordsThatAreNotPids) {
  EXPECT_EQ(parse_pids("12 13 \n"), (std::vector<std::int32_t>{12, 13}));
  EXPECT_EQ(parse_pids("x 0 -4 99999999999 7"), (std::vector<std::int32_t>{7}));
}

}  // namespace
}  // namespace forksight::proc
