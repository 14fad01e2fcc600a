#include "libc/random_numbers.hpp"

#include "guest/kept_errno.hpp"
#include "loader/modules.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

constinit DrawState g_draw_states[kGenerators] = {};

namespace {

constexpr std::uint32_t kMaxForks = 8;  // only the children of the first forks of a process are watched
constexpr std::size_t kStackBytes = 4U << 10U;

FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_forks = 0;
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_made_by = 0;  // ref of the fork that made this process; 0: none

bool any_is_used() {
  bool any = false;
  for (const DrawState state : g_draw_states) any = any || state != DrawState::kUnused;
  return any;
}

// True if there is a trace. The child of a process with one thread may have no trace yet. Then this function creates
// the trace and records the loaded objects. In such a child the loader's list is consistent: its parent had no other
// thread that could have been changing the list at the fork.
bool has_trace() {
  if (trace_is_open()) return true;
  if (g_had_threads.load(std::memory_order_relaxed) || !open_trace()) return false;
  refresh_modules();
  return true;
}

}  // namespace

__attribute__((noinline)) void note_draw_slow(trace::Generator generator, std::uint64_t value, const Site& site) {
  const DrawState before = draw_state(generator);
  draw_state(generator) = DrawState::kUsed;
  if (before != DrawState::kInherited) return;
  const KeptErrno kept;
  if (!has_trace()) return;
  const std::uint64_t stack = append_stack(site, t_slot, kStackBytes, false, Importance::kFinding);
  append(trace::RecordType::kDraw, trace::DrawRecord{g_made_by, stack, value, generator, 0}, Importance::kFinding);
}

void at_fork::RandomNumbers::counts() {
  if (FORKSIGHT_UNLIKELY(any_is_used())) ++g_forks;
}

void at_fork::RandomNumbers::starts_any(std::uint64_t fork) {
  if (FORKSIGHT_LIKELY(!any_is_used())) return;
  g_made_by = fork;
  if (g_forks > kMaxForks) return;
  for (DrawState& state : g_draw_states) {
    if (state == DrawState::kUsed) state = DrawState::kInherited;
  }
}

}  // namespace forksight
