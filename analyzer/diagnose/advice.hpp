// What to do in the words of the framework or language of the process that hangs. One table, used for all rules at one place.
#pragma once

#include "diagnose/finding.hpp"

namespace forksight {

// Puts two fixes in front of the others. The first says which process to end now, and what becomes of the others and of the work. The
// second says how to avoid the hang, in the words of the first context of the table that a stack shows: for a forked child that
// hangs on what it has by its fork, and for a child that writes to a full pipe while its parent waits for its end.
void add_advice(const model::Model& model, Finding& finding);

}  // namespace forksight
