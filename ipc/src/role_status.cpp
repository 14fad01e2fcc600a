#include "role_status.hpp"

namespace forksight::ipc::detail {

role_status role_tracker::of(std::uint32_t role, members& who, const ring& view, const geometry& shape,
                             std::uint64_t now_ns) {
  role_status seen;
  seen.expected = role == kProducerRole ? shape.expected_producers : shape.expected_consumers;
  const header& head = *view.head;
  const std::uint64_t came = head.came[index_of(role)].load();
  if (came == 0 && seen.expected == 0) return seen;
  if (who.has(role)) return seen;
  seen.ended = count_ended(view, role);
  const std::uint64_t creator = head.creator.load();
  const std::uint64_t ended = std::uint64_t{seen.ended.closed} + seen.ended.died;
  auto then = role_status::kind::ended;
  if (seen.expected != 0 && ended < seen.expected) {
    if ((creator & kDied) == 0) return seen;
    then = role_status::kind::creator_died;
  }
  const bool all_closed = seen.expected != 0 && seen.ended.closed >= seen.expected;
  if (shape.grace_ms == 0 || all_closed) {
    seen.what = then;
    return seen;
  }
  // Each of these numbers only grows. So the sum changes if a member has come or ended since the last look.
  const std::uint64_t version = came + ended + (creator != 0 ? 1 : 0) + 1;
  absence& absent = absent_[index_of(role)];
  if (absent.version.load(std::memory_order_acquire) != version) {  // pairs with the store below
    absent.since_ns.store(now_ns, std::memory_order_relaxed);
    absent.version.store(version, std::memory_order_release);  // pairs with the load above
  }
  const std::uint64_t end_ns =
      absent.since_ns.load(std::memory_order_relaxed) + std::uint64_t{shape.grace_ms} * 1'000'000;
  if (now_ns >= end_ns) {
    seen.what = then;
  } else {
    seen.look_again_ns = end_ns;
  }
  return seen;
}

std::string describe_expected(std::uint32_t role, std::uint32_t expected, const ended_members& ended,
                              std::uint32_t there) {
  if (expected == 0) return {};
  const std::uint32_t came = ended.closed + ended.died + there;
  return std::to_string(came) + " of " + std::to_string(expected) + " expected " +
         (role == kProducerRole ? "producer" : "consumer") + (expected == 1 ? "" : "s") +
         (came == 1 ? " has" : " have") + " come";
}

}  // namespace forksight::ipc::detail
