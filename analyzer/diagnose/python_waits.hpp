// What a proven dead child of Python waits for. Its stack and the stacks of its lost threads show it together, by pairs
// of functions of CPython's own library: one of them always ends the wait of the other.
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
// A rule of its own, other than lost-wakeup, explains the wait.
bool is_explained(const Evidence& evidence, const model::Fork& fork);
// Rewrites a lost-wakeup of a Python child in lines of Python, if there are any. Where the wait is known, the finding
// becomes certain.
bool retell(const Evidence& evidence, const model::Fork& fork, Finding& finding);

}  // namespace forksight::python
