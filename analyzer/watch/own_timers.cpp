#include "watch/own_timers.hpp"

#include <signal.h>

#include <charconv>

#include "watch/proc_fs.hpp"
#include "watch/proof.hpp"
#include "watch/wait_class.hpp"

namespace forksight::watch {

std::uint64_t parse_timer_signals(std::string_view text) {
  constexpr std::string_view kSignal = "signal: ";
  std::uint64_t signals = 0;
  for (std::size_t at = text.find(kSignal); at != std::string_view::npos; at = text.find(kSignal, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + at + kSignal.size(), end, number);
    const bool is_whole = error == std::errc{} && stop != end && *stop == '/';
    if (is_whole && number >= 1 && number <= 64) signals |= 1ULL << (number - 1);
  }
  return signals;
}

namespace {

// No file tells whether alarm() or setitimer() armed a timer: where SIGALRM has a handler, one may be. Their other
// timers count time on a processor, which a thread that sleeps does not use.
bool may_have_timer(std::int32_t pid, std::uint64_t caught) {
  if ((caught & 1ULL << (SIGALRM - 1)) != 0) return true;
  return caught != 0 && (caught & parse_timer_signals(read_file(proc_path(pid, "timers")).text)) != 0;
}

}  // namespace

bool may_timer_end(std::int32_t pid, const Round& round, const std::vector<WaitFacts>& facts) {
  std::uint64_t caught = 0;
  bool is_open_to_handlers = false;
  for (std::size_t index = 0; index < round.threads.size(); ++index) {
    const ThreadSample& thread = round.threads[index];
    if (thread.ended()) continue;
    caught |= thread.status.caught;
    const model::WaitKind kind = describe_wait(thread, index < facts.size() ? &facts[index] : nullptr).kind;
    is_open_to_handlers |= kind != model::WaitKind::kFutex && kind != model::WaitKind::kVfork;
  }
  return is_open_to_handlers && may_have_timer(pid, caught & ~kReservedSignals);
}

}  // namespace forksight::watch
