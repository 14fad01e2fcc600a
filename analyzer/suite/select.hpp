// Which cases somebody asked for.
#pragma once

#include <string>
#include <vector>

#include "result.hpp"
#include "suite/results.hpp"

namespace forksight::suite {

struct Filter {
  std::vector<std::string> names = {};     // of cases, or globs; none: all
  std::vector<std::string> slugs = {};     // of a hazard that is expected by any way of looking
  std::vector<std::string> labels = {};    // "stress", "gpu"
  std::vector<std::string> folders = {};   // openmp, locks ...
  std::vector<std::string> outcomes = {};  // of the bare program
};

struct Entry {
  const Case* which = nullptr;
  Expectations expected;
};

// With `all`, cases with a label count, too, as in a list; else only those that are asked for by their whole name or by
// that label. An error for a name or a label that nothing has, and for a source that makes no sense.
struct SelectError {
  std::string message;
  bool is_usage = true;  // else the suite cannot be read
};
struct Selected {
  std::vector<Entry> entries;
  SelectError error;  // its message is empty if there is none
};
Selected select(const Suite& suite, const Filter& filter, bool all);

}  // namespace forksight::suite
