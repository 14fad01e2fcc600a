// Gives advice in the words of the framework or language of the hanging process. All rules use one table of advice.
#pragma once

#include "diagnose/finding.hpp"

namespace forksight {

// Puts up to two fixes before the other fixes of the finding. The first fix says which processes to end now, and what
// then happens to other processes and to the work. It is added if these processes hang for ever and still exist. The
// second fix says how to avoid the hang. It uses the words of the first context in the table that a stack shows. It is
// added for two kinds of findings. In the first kind, a forked child hangs on state that its fork broke. In the second
// kind, a child writes to a full pipe while its parent waits for the child to end.
void add_advice(const model::Model& model, Finding& finding);

}  // namespace forksight
