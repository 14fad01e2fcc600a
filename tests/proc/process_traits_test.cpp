// What a proof needs to know about a process: which processes share its memory, and what it has mapped.
#include "proc/process_traits.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <vector>

#include "proc/proc_text.hpp"

namespace forksight::proc {
namespace {

alignas(16) std::byte g_stack[64U << 10U];

// Starts a process that shares the memory of the test until it is killed.
pid_t start_sharer() {
  const auto sleep = [](void*) -> int {
    for (;;) ::pause();
  };
  return ::clone(sleep, g_stack + sizeof g_stack, CLONE_VM | SIGCHLD, nullptr);
}

pid_t start_copy() {
  const pid_t pid = ::fork();
  while (pid == 0) ::pause();
  return pid;
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(MemorySharers, FindsAProcessWithTheSameMemoryFromEitherSide) {
  const pid_t sharer = start_sharer();
  const pid_t copy = start_copy();
  const pid_t self = ::getpid();
  ASSERT_GT(sharer, 0);
  ASSERT_GT(copy, 0);
  for (const bool is_self_first : {true, false}) {
    MemorySharers memories;
    const std::vector<pid_t> order = is_self_first ? std::vector{self, copy, sharer} : std::vector{sharer, copy, self};
    for (const pid_t pid : order) {
      std::vector<std::int32_t> found;
      const Sharing sharing = memories.find(pid, pid, found);
      if (pid == copy) {
        EXPECT_EQ(sharing, Sharing::kAlone) << "fork() copies memory";
        EXPECT_TRUE(found.empty());
        continue;
      }
      EXPECT_EQ(sharing, Sharing::kShared);
      EXPECT_EQ(found, std::vector<std::int32_t>{pid == self ? sharer : self});
    }
  }
  end(copy);
  end(sharer);
}

TEST(MemorySharers, KnowsNothingOfAThreadThatHasEnded) {
  const pid_t sharer = start_sharer();
  ASSERT_GT(sharer, 0);
  const pid_t ended = start_copy();
  ASSERT_GT(ended, 0);
  MemorySharers memories;
  end(ended);
  std::vector<std::int32_t> found;
  // Asks as if `ended` were a thread of the sharer. Nothing is known then, so a caller must compare another thread.
  EXPECT_EQ(memories.find(sharer, ended, found), Sharing::kUnknown);
  EXPECT_EQ(memories.find(::getpid(), ::getpid(), found), Sharing::kShared);
  EXPECT_EQ(found, std::vector<std::int32_t>{sharer});
  end(sharer);
}

TEST(ProcessTraits, MappingsTellOfIoUringAndGlibc) {
  const auto mapped = [](const char* line) { return std::vector<Mapping>{parse_mapping(line).value()}; };
  const auto ring = mapped("1000-2000 rw-s 00000000 00:0e 7 anon_inode:[io_uring]");
  const auto glibc = mapped("1000-2000 r-xp 00000000 fe:00 7 /usr/lib/x86_64-linux-gnu/libc.so.6");
  const auto old_glibc = mapped("1000-2000 r-xp 00000000 fe:00 7 /lib/x86_64-linux-gnu/libc-2.31.so");
  const auto musl = mapped("1000-2000 r-xp 00000000 fe:00 7 /lib/ld-musl-x86_64.so.1");
  EXPECT_TRUE(has_io_uring(::getpid(), ring));
  EXPECT_FALSE(has_io_uring(::getpid(), glibc));
  EXPECT_TRUE(has_libc(glibc));
  EXPECT_TRUE(has_libc(old_glibc));
  EXPECT_FALSE(has_libc(musl));
}

}  // namespace
}  // namespace forksight::proc
