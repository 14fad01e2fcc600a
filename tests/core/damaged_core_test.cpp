// Two threads wait for each other's mutex. The test writes a core file of their process. In this file, it overwrites
// data that forksight reads: in the mutexes, in the pthread structs of the threads, and in the ELF notes. forksight
// must not crash, whatever the new data is. The damage is the same in each run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "../support/reader.hpp"
#include "../support/rounds.hpp"
#include "diagnose/diagnose.hpp"
#include "image/live.hpp"
#include "inspect/core_subject.hpp"
#include "lock_cycle_core.hpp"
#include "support/core_writer.hpp"

namespace forksight::inspect {
namespace {

const int kRounds = test::rounds_of_fuzzing(400);

pthread_mutex_t g_first = PTHREAD_MUTEX_INITIALIZER;

bool is_asleep(const image::Thread& thread) {
  return thread.state == 'S' && thread.call && thread.call->number == SYS_futex;
}

std::string rules_of(const std::vector<std::byte>& core) {
  const int fd = memfd_create("core", MFD_CLOEXEC);
  const auto written = ::write(fd, core.data(), core.size());
  EXPECT_EQ(written, static_cast<ssize_t>(core.size()));
  const auto subjects = open_core_subjects(files::reader_of_test(), "/proc/self/fd/" + std::to_string(fd));
  ::close(fd);
  if (!subjects) return "error";
  std::string all;
  for (const Finding& finding : diagnose(build_model(subjects.value()))) all += (all.empty() ? "" : " ") + finding.rule;
  return all;
}

// A child of vfork() locks a mutex that another thread of its parent holds. That other thread still runs. The child
// uses the memory of its parent. So the pthread struct of the child's thread is the one of the parent's thread that
// called vfork(), and contains the id of that thread.
[[noreturn]] void block_in_vfork() {
  std::thread([] {
    pthread_mutex_lock(&g_first);
    for (;;) ::pause();
  }).detach();
  while (pthread_mutex_trylock(&g_first) == 0) {
    pthread_mutex_unlock(&g_first);
    sched_yield();
  }
  if (::vfork() == 0) pthread_mutex_lock(&g_first);
  std::abort();
}

pid_t only_child_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  pid_t child = 0;
  file >> child;
  return child;
}

TEST(CoreOfAVforkedChild, GivesNoFindingAboutAFork) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const pid_t parent = ::fork();
  if (parent == 0) block_in_vfork();
  std::vector<std::byte> core;
  pid_t child = 0;
  while (core.empty()) {  // if this never succeeds, the time limit of the test ends it
    child = only_child_of(parent);
    const auto live = child != 0 ? image::open_live(child) : Result<image::Image>(Error{"none yet"});
    if (live && std::ranges::all_of(live->threads, is_asleep)) core = test::make_core(live.value());
  }
  for (const pid_t pid : {child, parent}) ::kill(pid, SIGKILL);
  for (const pid_t pid : {parent, child}) EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_EQ(rules_of(core), "");
}

TEST(DamagedCore, NeverCrashesForksight) {
  const test::LockCycleCore victim = test::make_lock_cycle_core();
  ASSERT_GE(victim.places.size(), 4U);  // two mutexes, two threads
  ASSERT_EQ(rules_of(victim.core), "lock-cycle");
  std::mt19937_64 random(20240301);
  const std::uint64_t words[] = {0, 1, 2, 0x7fff'ffff, 0xffff'ffff, ~std::uint64_t{0}, std::uint64_t{1} << 63U};
  int others = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::byte> core = victim.core;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      // The change is near data that forksight reads: in a mutex, in the pthread struct of a thread, or in the ELF
      // notes at the beginning of the core.
      const std::size_t from = random() % 4 == 0 ? random() % 4096 : victim.places[random() % victim.places.size()];
      const std::size_t reach = random() % 2 == 0 ? 48 : 0x6a0;
      const std::size_t size = std::size_t{1} << (random() % 4);
      const std::size_t at = std::min(from + random() % reach / size * size, core.size() - size);
      const std::uint64_t value = random() % 2 == 0 ? random() : words[random() % std::size(words)];
      std::memcpy(&core[at], &value, size);
    }
    if (rules_of(core) != "lock-cycle") ++others;
  }
  EXPECT_GT(others, 0);  // some damage changes what forksight reads
  EXPECT_LT(others, kRounds);
}

}  // namespace
}  // namespace forksight::inspect
