// Examines descriptors of this test program itself.
#include "proc/descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <set>
#include <string>
#include <string_view>
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

TEST(Descriptors, ASignalfdIsFoundInTheTableOfEachThread) {
  std::promise<std::int32_t> has_signalfd;
  std::promise<void> is_seen;
  std::thread thread([&, seen = is_seen.get_future()]() mutable {
    if (::unshare(CLONE_FILES) != 0) return has_signalfd.set_value(-1);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    const int fd = ::signalfd(-1, &signals, SFD_CLOEXEC);
    has_signalfd.set_value(fd);
    seen.wait();
    ::close(fd);
  });
  const int fd = has_signalfd.get_future().get();
  DescriptorTables tables;
  EXPECT_TRUE(tables.may_have_signalfd(::getpid()));
  const auto is_signalfd = [](std::string_view link) { return link == "anon_inode:[signalfd]"; };
  const std::vector<Descriptor> found = tables.find(::getpid(), is_signalfd);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].fd, fd);
  EXPECT_NE(found[0].tid, ::getpid());
  is_seen.set_value();
  thread.join();
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
  EXPECT_TRUE(tables.may_have_signalfd(::getpid()));
  EXPECT_TRUE(tables.may_have_writer_to_eventfds(::getpid()));
  EXPECT_TRUE(tables.may_send_signals(::getpid()));
  tables.forget();
  EXPECT_TRUE(tables.is_cut()) << "the time stays used";
  DescriptorTables others;
  others.read_all({::getpid()});
  EXPECT_FALSE(others.is_cut());
  EXPECT_TRUE(others.has_whole(::getpid()));
  EXPECT_FALSE(others.may_have_signalfd(::getpid()));
  EXPECT_FALSE(others.may_send_signals(::getpid()));
}

// A process may give a descriptor to another process while the tables are read. The two following tests are the two
// processes.
TEST(Descriptors, ADescriptorThatArrivesAfterTheFirstReadingIsSeen) {
  DescriptorTables tables;
  tables.read(std::vector<std::int32_t>{::getpid()});
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string name = find_object(::getpid(), ends[1]).name;
  EXPECT_TRUE(tables.find_sockets_with_descriptors({::getpid()}).empty());
  EXPECT_EQ(tables.find_holders({name}).size(), 2U) << "the process has no socket";
  for (const int end : ends) ::close(end);
}

TEST(Descriptors, ADescriptorThatWasGivenAwayAfterTheFirstReadingIsSeen) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const int events = ::eventfd(0, EFD_CLOEXEC);
  ASSERT_GE(events, 0);
  const std::string of_pipe = find_object(::getpid(), ends[1]).name;
  const std::string of_events = find_object(::getpid(), events).name;
  DescriptorTables tables;
  tables.read(std::vector<std::int32_t>{::getpid()});
  const int last = ends[1];
  ::close(events);
  ASSERT_EQ(::dup2(ends[0], last), last) << "the number belongs to the reading end now";
  EXPECT_TRUE(tables.find_sockets_with_descriptors({::getpid()}).empty());
  EXPECT_EQ(tables.find_holders({of_events}).size(), 1U);
  ::close(last);
  DescriptorTables others;
  ASSERT_EQ(::close(ends[0]), 0);
  others.read(std::vector<std::int32_t>{::getpid()});
  EXPECT_TRUE(others.find_sockets_with_descriptors({::getpid()}).empty());
  EXPECT_TRUE(others.find_holders({of_pipe, of_events}).empty());
}

TEST(Descriptors, TheModeOfANumberThatWasUsedAgainIsNotTheModeOfTheOldFile) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string name = find_object(::getpid(), ends[1]).name;
  DescriptorTables tables;
  tables.read(std::vector<std::int32_t>{::getpid()});
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(null, 0);
  ASSERT_EQ(::dup2(null, ends[1]), ends[1]);
  const std::vector<Holder> holders = tables.find_holders({name});
  const auto writer = std::ranges::find(holders, ends[1], &Holder::fd);
  ASSERT_NE(writer, holders.end());
  EXPECT_TRUE(writer->writes) << "the process may have the writing end under another number";
  for (const int one : {null, ends[0], ends[1]}) ::close(one);
}

// In the child, only one or two threads live at any time, and each of them soon ends.
TEST(Descriptors, AThreadThatEndsDoesNotHideTheTableOfItsProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string name = find_object(::getpid(), ends[1]).name;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    struct Relay {
      static void* run(void*) {
        ::usleep(300);
        pthread_t next{};
        if (::pthread_create(&next, nullptr, run, nullptr) != 0) ::_exit(1);
        ::pthread_detach(next);
        ::usleep(150);
        return nullptr;
      }
    };
    ::alarm(20);
    Relay::run(nullptr);
    ::syscall(SYS_exit, 0);  // ends this thread only
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < until) {
    DescriptorTables tables;
    tables.read(std::vector<std::int32_t>{child});
    const bool is_seen = !tables.find_holders({name}).empty() || !tables.find_refused({child}).empty();
    EXPECT_TRUE(is_seen);
    if (!is_seen) break;
  }
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  for (const int end : ends) ::close(end);
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
