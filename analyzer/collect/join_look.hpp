// Joins what a trace recorded with what was seen from outside of the same processes while they hung.
#pragma once

#include "model/model.hpp"

namespace forksight::collect {

// A trace has the stack of a blocked operation from the moment before it began. If the thread was seen while it waited
// in that operation, Touch::stack becomes the stack of that later moment, because the later stack also has Python lines
// and inlined functions. If a thread waited at a condition variable or barrier at the fork and still waits there,
// Held::holder_now gets its present stack.
void join_look(model::Model& model);

}  // namespace forksight::collect
