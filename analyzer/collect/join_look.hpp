// Combines the records of a trace with what was seen from outside while the same processes hung.
#pragma once

#include "model/model.hpp"

namespace forksight::collect {

// A trace records the stack of an operation before the operation blocks. If the thread was later seen waiting in that
// operation, Touch::stack becomes the stack of that later moment, which also has Python lines and inlined functions. If
// a thread waited at a condition variable or barrier at the fork and still waits there, Held::holder_now becomes the
// present stack of this thread.
void join_look(model::Model& model);

}  // namespace forksight::collect
