// What the stacks of Python threads need: one stack is made out of a native stack and a Python stack, and waits are
// recognised that use a lock of Python as a signal.
#pragma once

#include "model/stack.hpp"

namespace forksight::model {

// Inserts Python's frames into a native stack, before the innermost frame of the interpreter's evaluation loop. If
// there is no such frame, inserts them before the innermost frame of the interpreter, or else at the end.
void splice_python(Stack& native, const Stack& python);

// True if the stack waits for a lock of Python that serves as a signal: a thread takes this lock to wait, and another
// thread releases it. There are two such waits. The queue `queue.SimpleQueue` has a lock that is taken while the queue
// is empty, and put() releases it. Up to CPython 3.12, each thread has a lock that is taken until the thread ends.
bool is_python_signal(const Stack& stack);

}  // namespace forksight::model
