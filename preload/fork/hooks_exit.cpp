// The hook of exit(). In a forked child that lost threads, exit() runs exit handlers and static destructors of the
// parent. These handlers and destructors may join, wait for or destroy what the child does not have. So the shim
// records the call before the first handler runs. If the child then ends, nothing is reported. In a child of vfork(),
// exit() runs these handlers in the parent's own memory. Such a call is recorded, too.
#include <atomic>

#include "fork/vfork_child.hpp"
#include "guest/site.hpp"
#include "loader/next.hpp"
#include "record/writer.hpp"
#include "threads/unending_waits.hpp"

using namespace forksight;

namespace {

// Only a small part of the stack is copied, because every child that ends by exit() pays for the copy.
constexpr std::size_t kStackBytes = 4U << 10U;

constinit std::atomic<bool> g_is_recorded{false};

void record_exit(const Site& site) {
  if (g_is_recorded.exchange(true, std::memory_order_relaxed)) return;
  const std::uint64_t stack = append_stack(site, own_slot(), kStackBytes, false, Importance::kFact);
  append(trace::RecordType::kTouch, trace::TouchRecord{latest_fork_with_losses(), trace::TouchKind::kExit,
                                                       trace::TouchAction::kNone, 0, 0, 0, stack, 0, 0, 0, 0});
}

}  // namespace

FORKSIGHT_EXPORT(void, exit, int status) {
  const auto real = reinterpret_cast<void (*)(int)>(next_of(g_next.exit));
  if (FORKSIGHT_UNLIKELY(has_lost_threads())) record_exit(FORKSIGHT_FRAME().site());
  if (is_vfork_child()) note_vfork_exit(FORKSIGHT_FRAME().site());
  real(status);
}

#include "guest/house_rules.hpp"
