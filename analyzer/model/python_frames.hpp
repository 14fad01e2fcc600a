// One stack out of a native one and Python's.
#pragma once

#include "model/stack.hpp"

namespace forksight::model {

// Puts Python's frames where the interpreter's own are in a native stack.
void splice_python(Stack& native, const Stack& python);

}  // namespace forksight::model
