// Explores every order of the steps of all actors. The victim may be killed between any two steps. While two processes
// recover, either of them may also be killed between any two steps. The exploration begins with the present memory, and
// follows each order to its end. check_end() judges each end.
//
// There are four reductions. Each can be left out.
//
// merge_dead: states are merged if they differ only in the place of the code at which the victim was killed. The victim
// makes no further step, so only what it had done counts.
//
// swap_equals: two producers run the same code and differ only by number, unless one of them is the victim. The same is
// true of two consumers with the same act. If the two exchange their roles in a state, the result is the mirror image
// of that state. The states that follow from the mirror image are the mirror images of the states that follow from the
// state itself. So only one of the two states is explored. Two recovering processes are treated in the same way.
//
// merge_alike: states are merged if they differ only in bytes of a stack that make no difference (model_automaton.hpp).
// The local states that are merged are checked with every value that the exploration meets. So each order of steps from
// one state is also an order of steps from the other, and leaves the same words.
//
// merge_local: some steps cannot be noticed by other actors, and do not depend on what other actors do. Such a local
// step is taken before all others. Every other step can also come after the local step, so no order with another end is
// lost. In terms of partial-order reduction, the local step is a persistent set. No run is endless, so no step is put
// off for ever.
// These steps are local:
// - A user accesses a word of kind `fact` (index, length, generation, ...) whose guard it owns, and no recovering
//   process has that guard in its window (automaton::local). A recovering process reads a fact only after it found the
//   dead process in the guard. The guard does not name the dead process before the user makes another step.
// - There is only one recovering process, and it accesses a word of kind `recovery`. Only recovering processes access
//   these words.
// - There is only one recovering process, and it accesses a fact or a guard that the dead process owns, without
//   changing the guard. Only recovering processes change these words.
// - Only together with merge_alike: a blind step. A blind step leaves its word as it is, and leads to one and the same
//   local state, whatever the value of the word is. This, too, is checked with every value that the exploration meets.
//   If a recovering process reads a guard, only values that do not name the dead process count. A guard that does not
//   name the dead process never names it later. So it does not matter when a blind step comes.
//
// If two processes recover, and the next step of each is one that a single recovering process would take as a local
// step, then only their steps and their kills are tried. No user notices these steps, and no user changes what they do.
// So the steps of users can also come later. Here the persistent set consists of the steps and the kills of both.
//
// A kill changes what follows from a step of the victim. So where a local step of the victim is tried, the kill of the
// victim is tried, too. The exception is a step that leaves everything as it is, because a kill after such a step has
// the same result as a kill before it. The same is true of a blind step of one of two recovering processes. A blind
// step with which such a process ends is not local, because the other process can be killed only before that step.
//
// These arguments rest on three rules, which are checked at each step that is explored with merge_local. Only
// recovering processes access words of kind `recovery`. A fact is accessed only by the owner of its guard, and by a
// recovering process that has the guard in its window. Any actor may change a guard without an owner. Otherwise only
// the owner may change the guard, or a recovering process if the owner is dead. The changed guard names nobody, or the
// actor that changed it. The first step that breaks a rule is always explored. The reason is that the steps before that
// step change no word on which it depends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_automaton.hpp"
#include "state_set.hpp"

namespace forksight::ipc::test {

struct reductions {
  bool merge_dead = true, swap_equals = true, merge_local = true, merge_alike = true;
  // Runs the code of each step again, and compares the result with the table.
  bool verify = false;
};

struct exploration {
  std::size_t states = 0, ends = 0, bytes = 0;
  std::uint64_t steps = 0;
  std::vector<std::uint64_t> end_states;  // the hashes of the ends, sorted; mirror images have the same hash
  std::string broken;                     // what is broken, and the steps that led to it; empty: nothing is broken
};

// Explores the memory and the plan of g_world. `progress`: shows a line on stderr, and renews it after each 2^20
// states.
exploration explore(const reductions& by, bool progress);

// What the users have done at an end.
struct ending {
  actor_view views[kUsers];
  bool is_dead = false;  // the victim was killed
};
// Judges the memory of g_world and what the users have done. Returns what is broken; empty: nothing is broken. Changes
// the memory, because it sends and takes messages.
std::string check_end(const ending& of);

}  // namespace forksight::ipc::test
