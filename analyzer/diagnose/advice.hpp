// Advice in the words of the framework whose worker hangs. One table serves all rules.
#pragma once

#include "diagnose/finding.hpp"

namespace forksight {

// For a forked child that hangs on something that its fork broke, and whose stack or fork shows a framework of the
// table. Puts two fixes in front of the others: which process to end now and what the framework then does, and how its
// workers start without the broken state. Other findings stay as they are.
void add_framework_advice(const model::Model& model, Finding& finding);

}  // namespace forksight
