// Shared by the rules about Python. These functions find and describe where Python threads were.
#pragma once

#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::python {

// Returns the Python stack of the thread at the fork; null if the interpreter did not give the stack.
const model::Stack* find_at_fork(const model::Model& model, const model::Fork& fork, const model::Thread& thread);
// Returns the Python stack of the thread in a process that hangs. `pointer` is the thread's pthread_self(). Null if the
// stacks of the process are not known.
const model::Stack* find_at_hang(const model::Model& model, const model::Process& process, std::uint64_t pointer);

// Returns the function of the standard library that the user's code called, such as "queue.Queue.put" or
// "threading.wait"; "" if the user's own frame waits.
std::string operation(const model::Stack& stack);
// Returns the place where the thread was in the user's code, such as "train.py:50, main".
std::string place(const model::Stack& stack);
// Returns the process with its command line, such as "child 4242 (python3 train.py)".
std::string process(const Evidence& evidence, model::ProcessId id);
// Returns the function with which the thread was started: the outermost frame of the user's code on its stack.
std::string start_function(const model::Stack& stack);

// Adds advice on start methods. The advice is the same for all rules about Python.
void add_fixes(Finding& finding);

}  // namespace forksight::python
