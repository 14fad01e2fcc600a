#include "lock_cycle_core.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "image/live.hpp"

namespace forksight::test {
namespace {

// The mutexes are on the stack. So each core of the process contains the mutexes, even if the core contains little
// other memory.
[[noreturn]] void hang() {
  pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&first);
  std::thread([&] {
    pthread_mutex_lock(&second);
    pthread_mutex_lock(&first);
  }).detach();
  // This loop ends when the other thread holds its first lock.
  while (pthread_mutex_trylock(&second) == 0) {
    pthread_mutex_unlock(&second);
    sched_yield();
  }
  pthread_mutex_lock(&second);
  std::abort();
}

bool is_asleep(const image::Thread& thread) {
  return thread.state == 'S' && thread.call && thread.call->number == SYS_futex;
}

}  // namespace

LockCycleCore make_lock_cycle_core(const CoreScene& scene) {
  const pid_t child = ::fork();
  if (child == 0) hang();
  LockCycleCore victim;
  std::vector<std::uint64_t> pointers;
  for (bool is_there = false; !is_there;) {  // the time limit of the test ends this loop
    const auto live = image::open_live(child);
    if (!live) continue;
    is_there = live->threads.size() == 2 && std::ranges::all_of(live->threads, is_asleep);
    if (!is_there) continue;
    victim.core = make_core(live.value(), scene);
    for (const image::Thread& thread : live->threads) pointers.push_back(thread.fs_base);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (std::size_t at = 0; at + 16 <= victim.core.size(); at += 4) {
    std::uint64_t word = 0;
    std::memcpy(&word, &victim.core[at], sizeof word);
    const bool is_thread = std::ranges::find(pointers, word) != pointers.end();
    std::uint32_t lock[4];
    std::memcpy(lock, &victim.core[at], sizeof lock);
    const auto has_pid = [&](std::uint32_t tid) {
      return tid >= static_cast<std::uint32_t>(child) && tid <= static_cast<std::uint32_t>(child) + 64;
    };
    if (is_thread || (lock[0] == 2 && lock[3] == 1 && has_pid(lock[2]))) victim.places.push_back(at);
  }
  return victim;
}

}  // namespace forksight::test
