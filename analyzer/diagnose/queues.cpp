#include "diagnose/queues.hpp"

#include <algorithm>
#include <string_view>

namespace forksight::queues {

namespace {

constexpr std::string_view kThreadName = "feed-";
constexpr std::size_t kIdDigits = 8;

std::string queue_of(const model::Thread& thread) {
  const std::string_view name = thread.name;
  if (!name.starts_with(kThreadName) || name.size() != kThreadName.size() + kIdDigits) return {};
  const std::string_view id = name.substr(kThreadName.size());
  return id.find_first_not_of("0123456789abcdef") == std::string_view::npos ? std::string(id) : std::string();
}

bool is_in_feeder(const model::Stack& stack) {
  return std::ranges::any_of(stack.frames, [](const model::Frame& frame) {
    return frame.function.starts_with("forksight::ipc::detail::feeder::");
  });
}

}  // namespace

std::optional<Feeder> find_feeder(const Evidence& evidence, const model::Touch& touch) {
  if (touch.kind != model::TouchKind::kLock || !is_in_feeder(touch.stack)) return std::nullopt;
  std::optional<Feeder> found;
  for (const model::ThreadId id : evidence.fork(touch).lost_threads) {
    const model::Thread& thread = evidence.model().threads[id];
    std::string queue = queue_of(thread);
    if (queue.empty()) continue;
    if (found) return std::nullopt;
    found = Feeder{&thread, std::move(queue)};
  }
  return found;
}

}  // namespace forksight::queues
