// The cases that the user asked for.
#pragma once

#include <string>
#include <vector>

#include "result.hpp"
#include "suite/results.hpp"

namespace forksight::suite {

struct Filter {
  std::vector<std::string> names = {};     // names of cases, or globs; none: all
  std::vector<std::string> slugs = {};     // slugs of hazards that any part of the case expects
  std::vector<std::string> labels = {};    // "stress", "gpu"
  std::vector<std::string> folders = {};   // openmp, locks ...
  std::vector<std::string> outcomes = {};  // how the bare program ends
};

struct Entry {
  const Case* which = nullptr;
  Expectations expected;
};

// With `all`, cases with a label are included, as in a list; otherwise only if the user gave their whole name or that
// label. An error for a name or label that no case has, and for an invalid source.
struct SelectError {
  std::string message;
  bool is_usage = true;  // false: the suite cannot be read
};
struct Selected {
  std::vector<Entry> entries;
  SelectError error;  // its message is empty if there is no error
};
Selected select(const Suite& suite, const Filter& filter, bool all);

}  // namespace forksight::suite
