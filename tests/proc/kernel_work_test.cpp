// Tests how forksight finds out what the kernel may do for a process. The tests examine this test program itself, and
// texts that /proc may contain on other machines.
#include "proc/kernel_work.hpp"

#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <string>

#include "proc/descriptor_tables.hpp"

namespace forksight::proc {
namespace {

bool uses_ring() {
  DescriptorTables tables;
  return may_use_ring(::getpid(), tables);
}

bool may_write() {
  DescriptorTables tables;
  return may_let_kernel_write_to_eventfd(::getpid(), tables);
}

// The test program may have inherited descriptors of any device. So the test checks only that its own descriptors do
// not change the answers.
TEST(KernelWork, CommonDescriptorsAreHarmless) {
  const bool used_ring = uses_ring();
  const bool wrote = may_write();
  sigset_t none;
  ::sigemptyset(&none);
  const int own[] = {::epoll_create1(0),
                     ::eventfd(0, 0),
                     ::inotify_init1(0),
                     ::signalfd(-1, &none, 0),
                     ::timerfd_create(CLOCK_MONOTONIC, 0),
                     static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))};
  EXPECT_EQ(uses_ring(), used_ring);
  EXPECT_EQ(may_write(), wrote);
  for (const int fd : own) ::close(fd);
}

TEST(KernelWork, QueuesForAsynchronousIoMayWriteToAnEventfd) {
  aio_context_t queue = 0;
  if (::syscall(SYS_io_setup, 1, &queue) != 0) GTEST_SKIP() << "the kernel refuses asynchronous I/O";
  EXPECT_TRUE(may_write());
  ::syscall(SYS_io_destroy, queue);
}

TEST(KernelWork, AnIoUringIsSeenByItsDescriptorAndByItsMapping) {
  io_uring_params about{};
  const int ring = static_cast<int>(::syscall(SYS_io_uring_setup, 1, &about));
  if (ring < 0) GTEST_SKIP() << "the kernel refuses io_uring";
  EXPECT_TRUE(uses_ring());
  EXPECT_TRUE(may_write());
  void* const queue = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  ASSERT_NE(queue, MAP_FAILED);
  ::close(ring);
  EXPECT_TRUE(uses_ring());
  ::munmap(queue, 4096);
  EXPECT_FALSE(uses_ring());
}

TEST(KernelWork, AutomountersGiveThePipesOfTheirMountsToTheKernel) {
  EXPECT_EQ(parse_autofs_pipes("24 1 0:22 / /proc rw shared:5 - proc proc rw\n"
                               "31 24 0:27 / /proc/sys rw shared:9 - autofs systemd-1 "
                               "rw,fd=29,pgrp=1,timeout=0,minproto=5,maxproto=5,direct,pipe_ino=13574\n"
                               "40 1 0:44 / /a\\040-\\040autofs\\040pipe_ino=7 rw - tmpfs pipe_ino=8 rw\n"
                               "41 1 0:45 / /net rw - autofs /etc/auto.net rw,fd=4,pipe_ino=99,direct\n"
                               "42 1 0:46 / /b rw - autofs broken rw,pipe_ino=\n"),
            (std::set<std::uint64_t>{13574, 99}));
  EXPECT_TRUE(parse_autofs_pipes("").empty());
}

// A machine that runs this test seldom has such devices. So the test passes only the names of their files.
TEST(KernelWork, VirtualMachinesAndPassedDevicesMayWriteToAnEventfd) {
  for (const char* link :
       {"anon_inode:kvm-vm", "anon_inode:kvm-vcpu:0", "anon_inode:[vfio-device]", "anon_inode:[io_uring]",
        "anon_inode:[devx_async_event]", "anon_inode:[a file of the next kernel]"})
    EXPECT_TRUE(may_anonymous_file_write(link)) << link;
  for (const char* link :
       {"anon_inode:[eventfd]", "anon_inode:inotify", "anon_inode:[perf_event]", "anon_inode:bpf-prog",
        "anon_inode:seccomp notify", "/dev/kvm", "pipe:[17]", "socket:[18]", ""})
    EXPECT_FALSE(may_anonymous_file_write(link)) << link;
}

TEST(KernelWork, AMappingKeepsADeviceOpen) {
  const auto may_write = [](const char* path) {
    return work_of_mappings(std::string("1000-2000 rw-s 00000000 00:06 7 ") + path + "\n").may_write_to_eventfd;
  };
  for (const char* path :
       {"/dev/dri/renderD128", "/dev/vfio/devices/vfio0", "anon_inode:[vfio-device]", "/[aio] (deleted)"})
    EXPECT_TRUE(may_write(path)) << path;
  for (const char* path :
       {"/dev/zero (deleted)", "/dev/shm/a", "/usr/lib/dev/libc.so.6", "anon_inode:[perf_event]", "[heap]"})
    EXPECT_FALSE(may_write(path)) << path;
}

TEST(KernelWork, OnlyVersionOneOfTheMemoryGroupsCounts) {
  constexpr const char* kHead = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n";
  const auto lists = [&](const char* lines) { return lists_memory_groups_of_version_1(std::string(kHead) + lines); };
  EXPECT_TRUE(lists("cpuset\t3\t1\t1\nmemory\t4\t84\t1\npids\t8\t1\t1\n"));
  EXPECT_TRUE(lists("memory\t10\t1\t1"));
  EXPECT_FALSE(lists("cpuset\t0\t86\t1\nmemory\t0\t86\t1\n")) << "version 2 has the controller";
  EXPECT_FALSE(lists("cpuset\t3\t1\t1\n")) << "the kernel has no memory controller";
  EXPECT_FALSE(lists("memory2\t4\t84\t1\n"));
  EXPECT_FALSE(lists(""));
  EXPECT_FALSE(lists_memory_groups_of_version_1(""));

  EXPECT_TRUE(is_in_memory_group_of_version_1("9:name=systemd:/\n4:memory:/a/b\n0::/\n"));
  EXPECT_TRUE(is_in_memory_group_of_version_1("4:cpuset,memory,pids:/"));
  EXPECT_FALSE(is_in_memory_group_of_version_1("0::/user.slice/memory:/memory\n"));
  EXPECT_FALSE(is_in_memory_group_of_version_1("1:name=memory:/memory\n0::/memory\n"));
  EXPECT_FALSE(is_in_memory_group_of_version_1(""));
}

}  // namespace
}  // namespace forksight::proc
