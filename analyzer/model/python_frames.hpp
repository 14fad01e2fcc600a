// Makes one stack out of a native stack and a Python stack.
#pragma once

#include "model/stack.hpp"

namespace forksight::model {

// Puts Python's frames in the place of the interpreter's own frames in a native stack.
void splice_python(Stack& native, const Stack& python);

}  // namespace forksight::model
