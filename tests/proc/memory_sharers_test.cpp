// Tests the search for processes that share one memory.
#include "proc/memory_sharers.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proc/proc_fs.hpp"
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
  ASSERT_GT(pid, 0);  // with 0 or -1, kill() would kill many processes
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

TEST(MemorySharers, GivesUnknownForAThreadThatHasEnded) {
  const pid_t sharer = start_sharer();
  ASSERT_GT(sharer, 0);
  const pid_t ended = start_copy();
  ASSERT_GT(ended, 0);
  MemorySharers memories;
  end(ended);
  std::vector<std::int32_t> found;
  // The second argument is the thread whose memory is compared. The test passes `ended`, as if a thread of the sharer
  // had ended. The result must be kUnknown, so that a caller tries another thread.
  EXPECT_EQ(memories.find(sharer, ended, found), Sharing::kUnknown);
  EXPECT_EQ(memories.find(::getpid(), ::getpid(), found), Sharing::kShared);
  EXPECT_EQ(found, std::vector<std::int32_t>{sharer});
  end(sharer);
}

// Changes the user and group of the calling thread only. No user with this id need exist.
void change_user(uid_t user) {
  if (::syscall(SYS_setresgid, user, user, user) != 0 || ::syscall(SYS_setresuid, user, user, user) != 0) ::_exit(9);
}

// The processes of the next test write their results here. The struct is in memory that they share with the test.
struct Shared {
  pid_t sharer;
  int sharing;
  bool has_sharer;
  bool has_copy;
  bool has_first;
};

// A process of user 2 (the target) shares its memory with a process of user 1 (the sharer). Another process of user 2
// (the examiner) has no right to compare the memory of these two. The examiner must not claim that no other process
// shares the target's memory. It must not take a process of user 1 with memory of another size (the copy) for a sharer.
TEST(MemorySharers, AProcessWithOtherRightsMayShareTheMemory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make processes of two users";
  constexpr std::size_t kMuch = 64U << 20U;
  void* const map = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  auto& shared = *static_cast<Shared*>(map);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t target = ::fork();
  if (target == 0) {
    static int own[2];
    if (::pipe(own) != 0) ::_exit(9);
    const auto drop_rights = [](void*) -> int {
      change_user(1);
      // A change of the user clears the "dumpable" flag, so that even the same user may not read the memory. This call
      // sets the flag again.
      ::prctl(PR_SET_DUMPABLE, 1);
      if (::write(own[1], "x", 1) != 1) ::_exit(9);
      for (;;) ::pause();
    };
    shared.sharer = ::clone(drop_rights, g_stack + sizeof g_stack, CLONE_VM | SIGCHLD, nullptr);
    char byte = 0;
    if (shared.sharer < 0 || ::read(own[0], &byte, 1) != 1) ::_exit(9);
    change_user(2);
    ::prctl(PR_SET_DUMPABLE, 1);
    if (::write(ready[1], "x", 1) != 1) ::_exit(9);
    for (;;) ::pause();
  }
  const pid_t copy = ::fork();
  if (copy == 0) {
    // The memory of the copy is larger than that of the target.
    if (::mmap(nullptr, kMuch, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) ::_exit(9);
    change_user(1);
    ::prctl(PR_SET_DUMPABLE, 1);
    if (::write(ready[1], "x", 1) != 1) ::_exit(9);
    for (;;) ::pause();
  }
  char byte = 0;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const pid_t examiner = ::fork();
  if (examiner == 0) {
    change_user(2);
    std::vector<std::int32_t> found;
    MemorySharers memories;
    shared.sharing = static_cast<int>(memories.find(target, target, found));
    const auto has = [&](pid_t pid) { return std::ranges::find(found, pid) != found.end(); };
    shared.has_sharer = has(shared.sharer);
    shared.has_copy = has(copy);
    shared.has_first = has(1);
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(examiner, &status, 0), examiner);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(shared.sharing, static_cast<int>(Sharing::kShared));
  EXPECT_TRUE(shared.has_sharer);
  EXPECT_FALSE(shared.has_copy);
  EXPECT_FALSE(shared.has_first);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  end(target);
  end(shared.sharer);
  end(copy);
  ::munmap(map, sizeof(Shared));
  ::close(ready[0]);
  ::close(ready[1]);
}

// Starts a process of a user. It has a memory of its own, which is as large as that of the other processes that this
// function starts in the same way. Returns when the process sleeps as that user.
pid_t start_as(uid_t user, bool calls_exec) {
  int ready[2];
  if (::pipe(ready) != 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {
    change_user(user);
    ::prctl(PR_SET_DUMPABLE, 1);
    if (calls_exec) {
      ::dup2(ready[1], STDOUT_FILENO);
      ::execl("/bin/sh", "sh", "-c", "echo; kill -STOP $$", nullptr);
      ::_exit(9);
    }
    if (::write(ready[1], "x", 1) != 1) ::_exit(9);
    for (;;) ::pause();
  }
  char byte = 0;
  const bool is_ready = ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  ::close(ready[1]);
  if (calls_exec) ::waitpid(pid, nullptr, WUNTRACED);
  return is_ready ? pid : -1;
}

std::uint64_t start_of(pid_t pid) { return parse_stat(read_file(proc_path(pid, "stat")).text)->start_ticks; }

std::string peak_of(pid_t pid) {
  return std::string(find_field(read_file(proc_path(pid, "status")).text, "VmPeak").value_or(""));
}

// Returns what a process of user 2 finds out about the memory of `target`, a process of user 2.
Sharing examine_as_another_user(pid_t target, const std::optional<ProcessKey>& root, pid_t twin) {
  constexpr int kFoundOther = 10;
  const pid_t examiner = ::fork();
  if (examiner == 0) {
    change_user(2);
    std::vector<std::int32_t> found;
    const Sharing sharing = MemorySharers(root).find(target, target, found);
    const bool has_twin = std::ranges::find(found, twin) != found.end();
    ::_exit(sharing == Sharing::kShared && !has_twin ? kFoundOther : static_cast<int>(sharing));
  }
  int status = -1;
  EXPECT_EQ(::waitpid(examiner, &status, 0), examiner);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != kFoundOther) << status;
  return static_cast<Sharing>(WEXITSTATUS(status));
}

// Another user's process of the same program has memory of the same size. It is older than the root of the examined
// processes, so it does not share their memory.
TEST(MemorySharers, AProcessThatIsOlderThanTheRootSharesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make processes of two users";
  const pid_t twin = start_as(1, false);
  ASSERT_GT(twin, 0);
  pid_t root = start_as(2, false);
  while (start_of(root) <= start_of(twin)) {  // the kernel counts starts in ticks of 10 ms
    end(root);
    root = start_as(2, false);
    ASSERT_GT(root, 0);
  }
  ASSERT_EQ(peak_of(twin), peak_of(root));
  EXPECT_EQ(examine_as_another_user(root, std::nullopt, twin), Sharing::kShared);
  EXPECT_EQ(examine_as_another_user(root, ProcessKey{root, start_of(root)}, twin), Sharing::kAlone);
  end(root);
  end(twin);
}

// The arguments of a program are in its memory.
TEST(MemorySharers, ProcessesWithDifferentArgumentsShareNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make processes of two users";
  const pid_t twin = start_as(1, false);
  char& first = *program_invocation_name;
  const char before = first;
  first = '?';
  const pid_t target = start_as(2, false);
  first = before;
  ASSERT_GT(twin, 0);
  ASSERT_GT(target, 0);
  ASSERT_EQ(peak_of(twin), peak_of(target));
  EXPECT_EQ(examine_as_another_user(target, std::nullopt, twin), Sharing::kAlone);
  end(target);
  end(twin);
}

// Only clone() shares memory, and exec() ends that. So two processes that have called exec do not share their memory.
TEST(MemorySharers, TwoProcessesThatHaveCalledExecShareNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make processes of two users";
  const pid_t twin = start_as(1, true);
  const pid_t target = start_as(2, true);
  ASSERT_GT(twin, 0);
  ASSERT_GT(target, 0);
  ASSERT_EQ(peak_of(twin), peak_of(target));
  EXPECT_EQ(examine_as_another_user(target, std::nullopt, twin), Sharing::kAlone);
  end(target);
  end(twin);
}

// Makes several memories, and three processes for each of them.
TEST(MemorySharers, TellsManyMemoriesApart) {
  constexpr int kMemories = 12;
  std::vector<std::array<pid_t, 3>> memories;
  for (int i = 0; i < kMemories; ++i) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t first = ::fork();
    if (first == 0) {
      alignas(16) static std::byte stacks[2][16U << 10U];
      const auto sleep = [](void*) -> int {
        for (;;) ::pause();
      };
      std::array<pid_t, 3> pids{::getpid(), 0, 0};
      for (int at = 0; at < 2; ++at)
        pids[static_cast<std::size_t>(at) + 1] =
            ::clone(sleep, stacks[at] + sizeof stacks[at], CLONE_VM | SIGCHLD, nullptr);
      if (::write(ends[1], pids.data(), sizeof pids) != sizeof pids) ::_exit(9);
      for (;;) ::pause();
    }
    std::array<pid_t, 3> pids{};
    ASSERT_EQ(::read(ends[0], pids.data(), sizeof pids), static_cast<ssize_t>(sizeof pids));
    ::close(ends[0]);
    ::close(ends[1]);
    memories.push_back(pids);
  }
  MemorySharers sharers;
  for (const std::array<pid_t, 3>& pids : memories) {
    for (const pid_t pid : pids) {
      std::vector<std::int32_t> found;
      EXPECT_EQ(sharers.find(pid, pid, found), Sharing::kShared);
      std::vector<std::int32_t> expected(pids.begin(), pids.end());
      std::erase(expected, pid);
      std::ranges::sort(expected);
      std::ranges::sort(found);
      EXPECT_EQ(found, expected);
    }
  }
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  for (const std::array<pid_t, 3>& pids : memories) {
    for (const pid_t pid : pids) end(pid);
  }
}

// The first thread of the sharer ends. Another thread of the sharer goes on, so the memory is still shared.
TEST(MemorySharers, FindsAProcessWhoseFirstThreadHasEnded) {
  alignas(16) static std::byte stack[16U << 10U];
  static int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto start_thread = [](void*) -> int {
    const auto sleep = [](void*) -> int {
      if (::write(ends[1], "x", 1) != 1) ::_exit(9);
      for (;;) ::pause();
    };
    constexpr int kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    if (::clone(sleep, stack + sizeof stack, kThread, nullptr) < 0) ::_exit(9);
    for (;;) ::syscall(SYS_exit, 0);
  };
  const pid_t sharer = ::clone(start_thread, g_stack + sizeof g_stack, CLONE_VM | SIGCHLD, nullptr);
  ASSERT_GT(sharer, 0);
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  while (true) {
    const auto stat = parse_stat(read_file(task_path(sharer, sharer, "stat")).text);
    ASSERT_TRUE(stat);
    if (stat->state == 'Z') break;
    ::usleep(1000);
  }
  std::vector<std::int32_t> found;
  MemorySharers memories;
  EXPECT_EQ(memories.find(::getpid(), ::getpid(), found), Sharing::kShared);
  EXPECT_EQ(found, std::vector<std::int32_t>{sharer});
  end(sharer);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace forksight::proc
