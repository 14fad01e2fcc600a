// What the rules about Python share: where its threads were, and how that is said.
#pragma once

#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::python {

// Where the thread was at the fork; null if the interpreter did not tell.
const model::Stack* find_at_fork(const model::Model& model, const model::Fork& fork, const model::Thread& thread);
// Where the thread of `pointer` is in a process that hangs; null if the interpreter was not asked.
const model::Stack* find_at_hang(const model::Model& model, const model::Process& process, std::uint64_t pointer);

// What the user's code called of the standard library: "queue.Queue.put", "threading.wait"; "" if it is the user's
// own frame that waits.
std::string operation(const model::Stack& stack);
// "train.py:50, main"
std::string place(const model::Stack& stack);
// "child 4242 (python3 train.py)"
std::string process(const Evidence& evidence, model::ProcessId id);
// The function that the thread was started with, as far as its stack tells: the outermost one of the user's.
std::string start_function(const model::Stack& stack);

// Start methods and their like, the same for all of these rules.
void add_fixes(Finding& finding);

}  // namespace forksight::python
