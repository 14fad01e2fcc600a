// Random numbers that forked children draw from libc's generators. Children inherit the state of the generators from
// the parent. The first number of each child is recorded: if two children of one process drew the same first number,
// their later numbers are the same, too.
#pragma once

#include <cstdint>

#include "forksight/trace/shares.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

// What is known about one generator. kUsed: this process has drawn a number from it, or has seeded it. kInherited: only
// an ancestor has done so.
enum class DrawState : std::uint8_t { kUnused, kUsed, kInherited };
inline constexpr std::uint32_t kGenerators = 2;
extern DrawState g_draw_states[kGenerators];

inline DrawState& draw_state(trace::Generator generator) {
  return g_draw_states[static_cast<std::uint32_t>(generator) - 1];
}

void note_draw_slow(trace::Generator generator, std::uint64_t value, const Site& site);

// Records the first number that a child draws from a generator whose state it inherited. `value`: 31 bits of the
// generator's state. Costs a load and a branch, except for the first number of a process.
inline void note_random_number(trace::Generator generator, std::uint64_t value, Frame frame) {
  if (FORKSIGHT_LIKELY(draw_state(generator) == DrawState::kUsed)) return;
  note_draw_slow(generator, value, frame.site());
}

// Called when the program seeds the generator: later numbers do not depend on the inherited state.
inline void note_seed(trace::Generator generator) {
  if (FORKSIGHT_UNLIKELY(draw_state(generator) != DrawState::kUsed)) draw_state(generator) = DrawState::kUsed;
}

namespace at_fork {
struct RandomNumbers {
  static void counts();
  static void starts_any(std::uint64_t record);
};
}  // namespace at_fork

}  // namespace forksight
