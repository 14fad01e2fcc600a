// Tests how the analyzer finds out what can still end a wait: a cgroup that is thawed, a signal handler, or a way out
// of the process for which the waiting process waits.
#include "watch/ways_out.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace forksight::watch {
namespace {

constexpr std::uint64_t signal_bit(int signal) { return 1ULL << static_cast<unsigned>(signal - 1); }

TEST(WaysOut, FindsTheFilesOfTheFreezer) {
  EXPECT_EQ(find_freezer_files("12:cpu,cpuacct:/a\n5:freezer:/jobs/7\n0::/user.slice\n"),
            (std::vector<std::string>{"/sys/fs/cgroup/freezer/jobs/7/freezer.state",
                                      "/sys/fs/cgroup/user.slice/cgroup.events",
                                      "/sys/fs/cgroup/unified/user.slice/cgroup.events"}));
  EXPECT_TRUE(find_freezer_files("0:x\nno line\n:::\n").empty());
  EXPECT_TRUE(is_frozen_text("FROZEN\n"));
  EXPECT_TRUE(is_frozen_text("populated 1\nfrozen 1\n"));
  EXPECT_FALSE(is_frozen_text("THAWED\n"));
  EXPECT_FALSE(is_frozen_text("populated 1\nfrozen 0\n"));
}

TEST(WaysOut, AHandlerOfSigabrtCountsUnlessTheProgramHandlesCrashes) {
  proc::Status status;
  status.caught = signal_bit(SIGABRT);
  EXPECT_EQ(find_caught(status, true, false), signal_bit(SIGABRT)) << "a watchdog may send it";
  status.caught |= signal_bit(SIGSEGV) | signal_bit(SIGBUS);
  EXPECT_EQ(find_caught(status, true, false), 0U) << "Python's faulthandler, for example";
  EXPECT_EQ(find_caught(status, true, true), signal_bit(SIGABRT)) << "a script has a handler, as gunicorn does";
  status.caught |= signal_bit(SIGTERM);
  EXPECT_EQ(find_caught(status, true, false), signal_bit(SIGTERM));
}

TEST(WaysOut, NamesSignals) {
  EXPECT_EQ(name_signals(signal_bit(SIGTERM)), "SIGTERM");
  EXPECT_EQ(name_signals(signal_bit(SIGHUP) | signal_bit(SIGTERM)), "SIGHUP and SIGTERM");
  EXPECT_EQ(name_signals(~0ULL), "SIGHUP, SIGINT, SIGQUIT, SIGILL and 60 more");
}

TEST(WaysOut, OfAProcessAlsoEndTheWaitsForIt) {
  const auto waits = [](std::int32_t pid, std::vector<Waker> wakers) {
    return ProcessWaits{pid, {{pid, false, std::move(wakers)}}};
  };
  const std::vector<ProcessWaits> processes = {waits(1, {{2, "pipe"}}), waits(2, {{3, "wait4"}, {4, "pipe"}}),
                                               waits(3, {}), waits(4, {{4, "pipe"}})};
  const auto of = [&](std::vector<bool> has_one) { return find_nearest_ways_out(processes, has_one); };
  const std::vector<std::optional<std::size_t>> none(4);
  EXPECT_EQ(of({false, false, false, false}), none);
  EXPECT_EQ(of({false, false, false, true}), (std::vector<std::optional<std::size_t>>{3, 3, std::nullopt, 3}));
  EXPECT_EQ(of({true, false, false, true}), (std::vector<std::optional<std::size_t>>{0, 3, std::nullopt, 3}));
}

}  // namespace
}  // namespace forksight::watch
