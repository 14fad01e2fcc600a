// What a proven dead child of Python waits for, as far as its stack and the stacks of the threads that it lost tell
// together: pairs of functions of CPython's own library of which one side is always ended by the other.
#pragma once

#include <optional>

#include "diagnose/evidence.hpp"

namespace forksight::python {

enum class Need { kWorker, kModule, kFeeder };

struct Wait {
  Need need = Need::kWorker;
  const model::Thread* partner = nullptr;  // the lost thread that would have ended it
  const model::Stack* partner_at_fork = nullptr;
};

// nullopt: nothing of that kind, or not known.
std::optional<Wait> find_wait(const Evidence& evidence, const model::Fork& fork);
// By a rule of its own, other than lost-wakeup.
bool is_explained(const Evidence& evidence, const model::Fork& fork);
// Tells a lost-wakeup of a child of Python in lines of Python, if there are any; where the wait is known, with certainty.
bool retell(const Evidence& evidence, const model::Fork& fork, Finding& finding);

}  // namespace forksight::python
