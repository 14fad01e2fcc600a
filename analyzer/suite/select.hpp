// Selects the cases that the user asked for.
#pragma once

#include <string>
#include <vector>

#include "result.hpp"
#include "suite/results.hpp"

namespace forksight::suite {

struct Filter {
  std::vector<std::string> names = {};     // names of cases, or globs; none: all
  std::vector<std::string> slugs = {};     // slugs of hazards; the case must expect one of them
  std::vector<std::string> labels = {};    // "stress", "gpu"
  std::vector<std::string> folders = {};   // openmp, locks ...
  std::vector<std::string> outcomes = {};  // how the bare program ends
};

struct Entry {
  const Case* which = nullptr;
  Expectations expected;
};

struct SelectError {
  std::string message;
  bool is_usage = true;  // false: the expectations of a case are invalid
};
struct Selected {
  std::vector<Entry> entries;
  SelectError error;  // its message is empty if there is no error
};
// If `all` is set, as for a list, the result also contains cases with a label. Otherwise the result contains such a
// case only if the user gave the whole name or the label of the case. It is an error if no case has a given name,
// folder or label, if no case matches the whole filter, or if the expectations in a source are invalid.
Selected select(const Suite& suite, const Filter& filter, bool all);

}  // namespace forksight::suite
