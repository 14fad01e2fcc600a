#include "fork/fork_turn.hpp"

#include <linux/futex.h>
#include <time.h>

#include "guest/clock.hpp"
#include "guest/config.hpp"
#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::uint64_t kLongestWaitNs = 1'000'000'000;
constexpr timespec kCheckEvery = {0, 50'000'000};  // time between two checks whether the owner lives

// The id of the thread that has the turn; 0: none.
FORKSIGHT_WRITTEN_AT_FORK constinit std::atomic<std::int32_t> g_turn{0};

}  // namespace

bool take_turn(const Slot* self) {
  if (!cures(trace::Cure::kSerialiseForks)) return false;
  std::int32_t owner = 0;
  if (g_turn.compare_exchange_strong(owner, self->tid, std::memory_order_acquire)) return true;
  if (owner == self->tid) return false;
  const std::uint64_t deadline_ns = now_ns() + kLongestWaitNs;
  const std::int32_t pid = sys::getpid();
  while (now_ns() < deadline_ns) {
    owner = g_turn.load(std::memory_order_relaxed);
    const bool is_free = owner == 0 || !sys::thread_exists(pid, owner);
    if (is_free && g_turn.compare_exchange_strong(owner, self->tid, std::memory_order_acquire)) return true;
    if (!is_free) sys::call(SYS_futex, sys::word(&g_turn), FUTEX_WAIT_PRIVATE, owner, sys::word(&kCheckEvery));
  }
  return false;
}

void release_turn(const Slot* self) {
  std::int32_t owner = self->tid;
  if (!g_turn.compare_exchange_strong(owner, 0, std::memory_order_release)) return;
  sys::call(SYS_futex, sys::word(&g_turn), FUTEX_WAKE_PRIVATE, 1);
}

void at_fork::Turns::reads(const Fork& fork) {
  const std::int32_t owner = g_turn.load(std::memory_order_relaxed);
  // If another thread of the parent had the turn, the turn is free in the child.
  if (owner != 0) g_turn.store(owner == fork.self.tid ? sys::getpid() : 0, std::memory_order_relaxed);
}

}  // namespace forksight
