// The value of --cure: checks it, explains it, and combines it with --omp and --on-orphan. cures.def has the names.
#pragma once

#include <string>

#include "session/session.hpp"

namespace forksight {

// Returns "" if the list is valid, else the error.
std::string check_cures(const std::string& list);

// Returns one line for each cure, for the help.
std::string describe_cures();

// Replaces `options.cure` by the full list of cures. Sets --omp and --on-orphan as the list implies. If the user gave
// one of these options, changes the list to agree with it.
void complete_cures(RunOptions& options, bool is_omp_given, bool is_on_orphan_given);

}  // namespace forksight
