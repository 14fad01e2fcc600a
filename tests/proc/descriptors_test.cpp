// Examines descriptors of this test program itself.
#include "proc/descriptors.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proc/descriptor_tables.hpp"
#include "proc/poll_set.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::proc {
namespace {

std::vector<Holder> find_own_holders(const std::string& object) {
  DescriptorTables tables;
  tables.read_all({});
  std::vector<Holder> holders = tables.find_holders({object});
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

TEST(Descriptors, ADescriptorIsOpenForReadingOrWriting) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::vector<Holder> holders = find_own_holders(find_object(::getpid(), ends[0]).name);
  ASSERT_EQ(holders.size(), 2U);
  for (const Holder& holder : holders) {
    EXPECT_EQ(holder.reads, holder.fd == ends[0]);
    EXPECT_EQ(holder.writes, holder.fd == ends[1]);
  }
  for (const int end : ends) ::close(end);
}

TEST(Descriptors, AMessageWithADescriptorIsInTheQueueOfItsReceiver) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  DescriptorTables before;
  EXPECT_TRUE(before.find_sockets_with_descriptors({::getpid()}).empty());
  char byte = 'x';
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const extra = CMSG_FIRSTHDR(&message);
  extra->cmsg_level = SOL_SOCKET;
  extra->cmsg_type = SCM_RIGHTS;
  extra->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(extra), ends.data(), sizeof(int));
  ASSERT_EQ(::sendmsg(ends[0], &message, 0), 1);
  DescriptorTables after;
  EXPECT_EQ(after.find_sockets_with_descriptors({::getpid()}),
            std::set<std::string>{find_object(::getpid(), ends[1]).name});
  for (const int end : ends) ::close(end);
}

TEST(Descriptors, TablesThatAreCutShowNothingToBeMissing) {
  DescriptorTables tables(std::chrono::nanoseconds(0));
  EXPECT_FALSE(tables.is_cut());
  tables.read_all({::getpid()});
  EXPECT_TRUE(tables.is_cut());
  EXPECT_FALSE(tables.has_whole(::getpid()));
  EXPECT_TRUE(tables.may_have_ring(::getpid()));
  EXPECT_TRUE(tables.may_have_writer_to_eventfds(::getpid()));
  EXPECT_TRUE(tables.may_send_signals(::getpid()));
  tables.forget();
  EXPECT_TRUE(tables.is_cut()) << "the time stays used";
  DescriptorTables others;
  others.read_all({::getpid()});
  EXPECT_FALSE(others.is_cut());
  EXPECT_TRUE(others.has_whole(::getpid()));
  EXPECT_FALSE(others.may_send_signals(::getpid()));
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
