// What a Python child that is proven dead waits for. Its stack and the stacks of its lost threads show this together,
// by pairs of functions of CPython's library: a thread in the one function always ends the wait of a thread in the
// other.
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

// nullopt: no such wait, or it is not known.
std::optional<Wait> find_wait(const Evidence& evidence, const model::Fork& fork);
// True if a rule other than lost-wakeup explains the wait.
bool is_explained(const Evidence& evidence, const model::Fork& fork);
// Rewrites the finding lost-wakeup of a Python child with Python's functions and lines, if these are known. If
// find_wait() knows the wait, the hang becomes proven, or likely if a signal handler may end it.
bool rewrite_for_python(const Evidence& evidence, const model::Fork& fork, Finding& finding);

}  // namespace forksight::python
