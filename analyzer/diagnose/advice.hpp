// What to do in the words of the framework whose worker hangs. One table, used for all rules at one place.
#pragma once

#include "diagnose/finding.hpp"

namespace forksight {

// Of a forked child that hangs on what its fork broke, and whose stack or fork shows a framework of the table: which
// process to end now, what the framework then does, and how its workers start without what is broken. Puts both in
// front of the other fixes. Other findings stay as they are.
void add_framework_advice(const model::Model& model, Finding& finding);

}  // namespace forksight
