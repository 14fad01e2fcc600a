// Examines descriptors of this test program itself.
#include "proc/descriptors.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proc/poll_set.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::proc {
namespace {

std::vector<Holder> find_own_holders(const std::string& object) {
  std::set<std::int32_t> refused;
  std::vector<Holder> holders = find_holders({object}, {}, refused);
  std::erase_if(holders, [](const Holder& one) { return one.pid != ::getpid(); });
  return holders;
}

TEST(Descriptors, AThreadMayHaveATableOfItsOwn) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_EQ(find_tables(::getpid()), std::vector<std::int32_t>{::getpid()});
  std::promise<std::int32_t> has_table;
  std::promise<void> is_seen;
  std::thread thread([&, seen = is_seen.get_future()]() mutable {
    if (::unshare(CLONE_FILES) != 0) return has_table.set_value(0);
    has_table.set_value(static_cast<std::int32_t>(::syscall(SYS_gettid)));
    seen.wait();
  });
  const std::int32_t tid = has_table.get_future().get();
  EXPECT_EQ(find_tables(::getpid()), (std::vector<std::int32_t>{::getpid(), tid}));
  EXPECT_FALSE(share_table(::getpid(), tid));
  const std::string name = find_object(::getpid(), ends[1]).name;
  EXPECT_EQ(find_own_holders(name).size(), 2U) << "both tables have both ends, and each end counts once";
  ::close(ends[1]);
  const std::vector<Holder> holders = find_own_holders(name);
  const auto writer = std::ranges::find_if(holders, &Holder::writes);
  ASSERT_NE(writer, holders.end()) << "the thread still has the writing end";
  EXPECT_EQ(writer->tid, tid);
  is_seen.set_value();
  thread.join();
  // A joined thread may still be in the list of the kernel for a moment.
  while (::access(("/proc/self/task/" + std::to_string(tid)).c_str(), F_OK) == 0) std::this_thread::yield();
  EXPECT_EQ(find_tables(::getpid()).size(), 1U);
  ::close(ends[0]);
}

// All eventfds have one inode. So an inode does not show whether a descriptor still refers to the file that the epoll
// instance watches.
TEST(Descriptors, AnEpollDoesNotWatchANumberThatWasUsedAgain) {
  const int poller = ::epoll_create1(EPOLL_CLOEXEC);
  const int watched = ::eventfd(0, EFD_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(poller, EPOLL_CTL_ADD, watched, &event), 0);
  ThreadSample thread;
  thread.tid = ::getpid();
  thread.call.in_syscall = true;
  thread.call.number = SYS_epoll_wait;
  thread.call.args[0] = static_cast<std::uint64_t>(poller);
  EXPECT_EQ(read_poll_set(thread), std::vector<std::int32_t>{watched});
  const int copy = ::dup(watched);
  const int other = ::eventfd(0, EFD_CLOEXEC);
  ASSERT_EQ(::dup2(other, watched), watched);
  EXPECT_FALSE(read_poll_set(thread));
  for (const int fd : {poller, watched, copy, other}) ::close(fd);
}

}  // namespace
}  // namespace forksight::proc
