// The way from a function that is still on a stack to one that has returned: which calls lead there, by the code, and
// whether their frames add up to the distance between the two on the stack.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "symbols/call_graph.hpp"

namespace forksight::symbols {

struct CallSite {
  Function function;                 // that the call is in
  std::uint64_t return_address = 0;  // run-time
  std::uint64_t sp = 0;              // rsp after the return; 0 if it cannot be told
  bool is_ambiguous = false;         // other calls of the function would fit, too
};

struct CallPath {
  std::vector<CallSite> sites;  // outermost first, the first one in the query's `from`; the last one calls the goal
  bool is_exact = false;        // the frames add up
};

struct PathQuery {
  Function from;
  std::uint64_t from_sp = 0;  // rsp of `from` at a call
  std::optional<std::uint64_t> from_cfa;
  Function goal;
  std::uint64_t goal_cfa = 0;
};

// The shortest path of up to five calls; an exact one if there is any. If equally good paths go through different
// functions, only the outer part that they have in common is returned. `budget`: how many functions the search may
// still examine.
std::optional<CallPath> find_call_path(const PathQuery& query, std::size_t& budget);

}  // namespace forksight::symbols
