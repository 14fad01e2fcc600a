// Gives advice in the words of the framework or language of the hanging process. All rules use one table of advice.
#pragma once

#include "diagnose/finding.hpp"

namespace forksight {

// Puts up to two fixes in front of the others. The first says which processes to end now, and what then happens to
// other processes and to the work. It is added if these processes still exist, and their hang is certain or likely. The
// second says how to avoid the hang, in the words of the first context in the table that a stack shows. It is added for
// two kinds of findings: a forked child hangs on state that its fork broke, or a child writes to a full pipe while its
// parent waits for the child to end.
void add_advice(const model::Model& model, Finding& finding);

}  // namespace forksight
