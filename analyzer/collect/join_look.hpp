// Joins what a trace recorded with what was seen of the same processes while they hung.
#pragma once

#include "model/model.hpp"

namespace forksight::collect {

// A trace has the stack of a blocked operation from before it began. If its thread was seen while it waits there,
// Touch::stack becomes the stack of that moment: it has the Python lines, and the frames that the compiler inserted. If
// a thread waited at a condition variable or barrier at the fork and still does, Held::holder_now shows where.
void join_look(model::Model& model);

}  // namespace forksight::collect
