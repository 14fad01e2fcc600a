// Every order of the steps of all actors, and of a kill between any two of them: of the victim, and of either of two
// who recover it. From where the memory is to the end; what is left at each end is judged by check_end().
//
// Three reductions, each of which can be left out.
//
// merge_dead: of one that was killed only what it had done counts, not where in its code it was: it has no next step.
//
// swap_equals: producers (consumers) of whom none is the victim run the same code, and differ by number. So what
// follows from a state follows, with the two in each other's place, from its mirror image: one of the two is gone on
// with. The same for those who recover.
//
// merge_local: a step that nobody else can tell, and that cannot tell what others do, is taken before all others, which
// can come after it as well: no order is lost that ends otherwise (a persistent set, in the terms of partial-order
// reduction; there are no endless runs, so nothing is put off for ever). Such are:
// - a step on what a guard guards (index, length, generation ...), by the guard's owner, while nobody who recovers has
//   that guard in his window (automaton::local): he can read it only after having read the guard naming the dead one,
//   and it does not, until its owner moves;
// - of the only one who recovers: on words of the participants' table, and on what the dead one owns, if it changes no
//   guard: only he touches the former, and changes the latter.
// A kill does change what follows from a step of the victim, so it is tried beside that. What this rests on is checked
// at each step that is explored: nobody touches what is guarded but by these two ways, nobody but its owner changes a
// guard, or who recovers it if that one is dead. The first such step there is would be seen: what is put before it
// changes none of the words that it hangs on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_automaton.hpp"
#include "state_set.hpp"

namespace forksight::ipc::test {

struct reductions {
  bool merge_dead = true, swap_equals = true, merge_local = true;
  // Run each step anew, and compare it with the table.
  bool verify = false;
};

struct exploration {
  std::size_t states = 0, ends = 0, bytes = 0;
  std::uint64_t steps = 0;
  std::vector<std::uint64_t> end_states;  // sorted, each by a hash that a mirror image shares
  std::string broken;                     // and by which steps
};

// As g_world says. `progress`: a line on a terminal now and then.
exploration explore(const reductions& by, bool progress);

// The memory and what the actors have done, at an end. Empty: all is well. May write into the memory.
struct ending {
  actor_view views[kUsers];
  bool is_dead = false;  // the victim
};
std::string check_end(const ending& of);

}  // namespace forksight::ipc::test
