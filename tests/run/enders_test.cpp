// Tests how the analyzer finds out who could end a wait. The tests use made-up texts of /proc, and real waits of
// threads of this process.
#include "watch/enders.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "../support/reader.hpp"
#include "proc/descriptor_tables.hpp"
#include "proc/thread_sample.hpp"
#include "watch/time_left.hpp"

namespace forksight::watch {
namespace {

TEST(Enders, ParsesTheNumberOfWriteCalls) {
  EXPECT_EQ(parse_write_calls("rchar: 5\nwchar: 0\nsyscr: 2\nsyscw: 0\n"), 0U);
  EXPECT_EQ(parse_write_calls("syscw: 12\n"), 12U);
  EXPECT_FALSE(parse_write_calls(""));
  EXPECT_FALSE(parse_write_calls("syscw: -1\n"));
}

TEST(Enders, ParsesTheTimeLeftOfATimerDescriptor) {
  EXPECT_EQ(parse_timer_left("clockid: 1\nit_value: (4, 999942957)\nit_interval: (0, 0)\n"), 4999U);
  EXPECT_EQ(parse_timer_left("it_value: (0, 1)\n"), 0U);
  EXPECT_FALSE(parse_timer_left("it_value: (0, 0)\n"));
  EXPECT_FALSE(parse_timer_left("it_value: (-1, 5)\n"));
  EXPECT_FALSE(parse_timer_left("it_value: 4, 5\n"));
  EXPECT_FALSE(parse_timer_left("it_value: (4\n"));
}

// Runs `call` in a thread of this process, and returns the wait of that thread in the system call `number`.
template <class Call>
model::Wait look_at(std::int64_t number, const Call& call) {
  std::atomic<std::int32_t> tid{0};
  // The thread may go on after this function has returned.
  std::thread waiter([&tid, call] {
    tid = static_cast<std::int32_t>(::syscall(SYS_gettid));
    call();
  });
  std::vector<Waiter> waiters(1);
  waiters[0].pid = ::getpid();
  for (int attempt = 0; attempt < 5000; ++attempt) {
    bool refused = false;
    const auto sample = tid == 0 ? std::nullopt : proc::sample_thread(::getpid(), tid, refused);
    const bool is_there =
        sample && sample->status.state == 'S' && sample->call.in_syscall && sample->call.number == number;
    if (is_there) {
      waiters[0].thread = *sample;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  proc::DescriptorTables tables;
  find_waits(files::reader_of_test(), waiters, Tree(::getpid()), tables);
  waiter.detach();
  return waiters[0].wait;
}

TEST(Enders, OfAReadFromAPipeAreItsWriters) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const model::Wait wait = look_at(SYS_read, [reading = ends[0]] {
    char byte = 0;
    (void)!::read(reading, &byte, 1);
  });
  EXPECT_EQ(wait.kind, model::WaitKind::kPipeRead);
  EXPECT_EQ(wait.fd, ends[0]);
  EXPECT_EQ(wait.call, "in read");
  EXPECT_TRUE(wait.target.starts_with("pipe:[")) << wait.target;
  ASSERT_FALSE(wait.enders.empty());
  EXPECT_EQ(wait.enders[0].pid, ::getpid());
  EXPECT_EQ(wait.enders[0].fd, ends[1]);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
}

TEST(Enders, OfASleepIsATimer) {
  const model::Wait wait = look_at(SYS_clock_nanosleep, [] {
    const timespec time{30, 0};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
  });
  const auto timer = std::ranges::find(wait.enders, model::EnderKind::kTimer, &model::Ender::kind);
  ASSERT_NE(timer, wait.enders.end());
  EXPECT_LE(timer->in_ms.value_or(0), 30'000U);
}

}  // namespace
}  // namespace forksight::watch
