// Searches the calls that lead from a function that is still on a stack to a function that has returned. The machine
// code shows the calls. The sizes of the frames of these calls are compared with the distance between the two functions
// on the stack.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "symbols/call_graph.hpp"

namespace forksight::symbols {

struct CallSite {
  Function function;                 // the function that makes the call
  std::uint64_t return_address = 0;  // a run-time address
  std::uint64_t sp = 0;              // rsp after the return; 0 if it is not known
  bool is_ambiguous = false;         // other calls that the function makes would fit, too
};

struct CallPath {
  // outermost first: `from` of the query makes the first call, and the last call goes to the goal
  std::vector<CallSite> sites;
  bool is_exact = false;  // the sizes of the frames add up to the distance on the stack
};

struct PathQuery {
  Function from;
  std::uint64_t from_sp = 0;  // rsp of `from` while it makes a call
  std::optional<std::uint64_t> from_cfa;
  Function goal;
  std::uint64_t goal_cfa = 0;
};

// Finds the shortest exact path of up to five calls. If no path is exact, finds the shortest path. If several paths of
// that length go through different functions, returns only the outer part that they share. `budget`: the number of
// functions that the search may still examine. The search decreases `budget`.
std::optional<CallPath> find_call_path(const PathQuery& query, std::size_t& budget);

}  // namespace forksight::symbols
