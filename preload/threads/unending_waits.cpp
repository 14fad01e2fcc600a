#include "threads/unending_waits.hpp"

#include <linux/futex.h>
#include <string.h>

#include "guest/mappings.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "guest/tasks.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::size_t kTouchStackBytes = 16U << 10U;
// At most this many waits are recorded. If a child begins one more wait, signals have ended all its earlier waits. So
// the waits of this child are not hangs.
constexpr std::uint32_t kMaxWaits = 256;

FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_losing_fork = 0;
constinit std::uint32_t g_waits = 0;

// True if the program handles some signal (signals 32 and 33 belong to glibc): a handler could end a wait. Also true if
// /proc does not say.
bool catches_signals() {
  constexpr const char kLabel[] = "SigCgt:\t";
  constexpr std::size_t kLabelBytes = sizeof kLabel - 1;
  constexpr std::uint64_t kReserved = 1ULL << 31U | 1ULL << 32U;
  char chunk[512];
  const int fd = sys::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  std::size_t matched = 0;
  std::uint32_t digits = 0;
  std::uint64_t caught = 0;
  for (long got = sys::read(fd, chunk, sizeof chunk); got > 0 && digits < 16;
       got = sys::read(fd, chunk, sizeof chunk)) {
    for (long i = 0; i < got && digits < 16; ++i) {
      const char letter = chunk[i];
      if (matched == kLabelBytes) {
        caught = caught * 16 + static_cast<std::uint64_t>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
        ++digits;
      } else {
        // After a mismatch, the label can begin at this letter, but not earlier: no later part of the label equals its
        // beginning.
        matched = letter == kLabel[matched] ? matched + 1 : letter == kLabel[0] ? 1 : 0;
      }
    }
  }
  sys::close(fd);
  return digits < 16 || (caught & ~kReserved) != 0;
}

}  // namespace

void note_lost_threads(std::uint64_t fork) {
  const auto* const record = find_record<trace::ForkRecord>(fork, trace::RecordType::kFork);
  if (record == nullptr) return;
  if (record->thread_count > 0 || record->tasks > 1) g_losing_fork = fork;
}

std::uint64_t latest_fork_with_losses() { return g_losing_fork; }

bool has_lost_threads() { return g_losing_fork != 0; }

Touch touch_futex(const volatile std::uint32_t* word, std::uint32_t operation, std::uint32_t value, const Site& site) {
  std::uint32_t now = 0;
  if (g_waits >= kMaxWaits || count_tasks() != 1) return {0};
  if (read_memory(const_cast<const std::uint32_t*>(word), &now, sizeof now) != sizeof now || now != value) {
    return {0};  // this wait does not block: the kernel returns at once
  }
  if ((operation & FUTEX_PRIVATE_FLAG) == 0 && is_in_shared_mapping(word)) return {0};
  ++g_waits;
  trace::TouchRecord touch{};
  touch.fork = g_losing_fork;
  touch.kind = trace::TouchKind::kFutexWait;
  touch.object = reinterpret_cast<std::uint64_t>(word);
  touch.stack = append_stack(site, t_slot, kTouchStackBytes, false, Importance::kFinding);
  touch.team = value;
  touch.clause = operation;
  touch.flags = catches_signals() ? trace::kTouchHandlers : 0U;
  return {append(trace::RecordType::kTouch, touch, Importance::kFinding)};
}

}  // namespace forksight
