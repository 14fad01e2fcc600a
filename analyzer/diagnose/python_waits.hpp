// Tells what a proven dead Python child waits for. The child's stack and the stacks of its lost threads together show
// this. The reason is that functions of CPython's library form pairs. A thread in one function of a pair ends the wait
// of a thread in the other function. For the result of a future this is only a guess: any thread may set it.
#pragma once

#include <optional>

#include "diagnose/evidence.hpp"

namespace forksight::python {

enum class Need { kWorker, kModule, kFeeder };

struct Wait {
  Need need = Need::kWorker;
  const model::Thread* partner = nullptr;  // the lost thread that would have ended the wait
  const model::Stack* partner_at_fork = nullptr;
};

// Returns the wait of the child, if the lost thread that would have ended this wait was found. nullopt: the child is
// not in a function of such a pair, no such lost thread was found, or the stacks are not known.
std::optional<Wait> find_wait(const Evidence& evidence, const model::Fork& fork);
// True if a rule other than lost-wakeup explains the wait.
bool is_explained(const Evidence& evidence, const model::Fork& fork);
// Rewrites the finding lost-wakeup of a Python child, so that it names Python's functions and lines. Returns false if
// these are not known. If find_wait() recognises the wait, the hang becomes proven. It becomes only likely if a signal
// handler may end the wait, even if this is only Python's own handler of Ctrl-C.
bool rewrite_for_python(const Evidence& evidence, const model::Fork& fork, Finding& finding);

}  // namespace forksight::python
