// What the rules about Python share: finding where Python threads were, and describing it.
#pragma once

#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::python {

// The Python stack of the thread at the fork; null if the interpreter did not give it.
const model::Stack* find_at_fork(const model::Model& model, const model::Fork& fork, const model::Thread& thread);
// The Python stack of the thread whose pthread_self() is `pointer`, in a process that hangs; null if the interpreter
// was not asked.
const model::Stack* find_at_hang(const model::Model& model, const model::Process& process, std::uint64_t pointer);

// The function of the standard library that the user's code called, for example "queue.Queue.put" or "threading.wait";
// "" if the user's own frame waits.
std::string operation(const model::Stack& stack);
// Returns the place where the thread was in the user's code, such as "train.py:50, main".
std::string place(const model::Stack& stack);
// Returns the process with its command line, such as "child 4242 (python3 train.py)".
std::string process(const Evidence& evidence, model::ProcessId id);
// The function that the thread was started with: the outermost frame of the user's code on its stack.
std::string start_function(const model::Stack& stack);

// Adds advice on start methods. It is the same for all of these rules.
void add_fixes(Finding& finding);

}  // namespace forksight::python
