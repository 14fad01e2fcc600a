// --cure: the names of cures.def, checked, explained, and brought together with --omp and --on-orphan.
#pragma once

#include <string>

#include "session/session.hpp"

namespace forksight {

// "" if the list is understood, else what is wrong with it.
std::string check_cures(const std::string& list);

// One line a cure, for the help.
std::string describe_cures();

// Sets what the list implies and was not said by an option of its own; writes the list out in full.
void settle_cures(RunOptions& options, bool is_omp_given, bool is_on_orphan_given);

}  // namespace forksight
