// Advice in the words of the framework or language of the process that hangs. One table serves all rules.
#pragma once

#include "diagnose/finding.hpp"

namespace forksight {

// Puts two fixes in front of the others. The first says which process to end now, and what then happens to the other
// processes and to the work. The second says how to avoid the hang, in the words of the first context in the table that
// a stack shows. Both apply to a forked child that hangs on state that its fork broke, and to a child that writes to a
// full pipe while its parent waits for the child to end.
void add_advice(const model::Model& model, Finding& finding);

}  // namespace forksight
