// Makes one stack out of a native stack and a Python stack.
#pragma once

#include "model/stack.hpp"

namespace forksight::model {

// Inserts Python's frames into a native stack, before the innermost frame of the interpreter's evaluation loop. If
// there is no such frame, inserts them before the innermost frame of the interpreter, or else at the end.
void splice_python(Stack& native, const Stack& python);

}  // namespace forksight::model
