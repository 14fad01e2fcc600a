// Tells what a thread in a futex wait is waiting for. The function names on the thread's stack show this.
#pragma once

#include <string>

#include "model/model.hpp"

namespace forksight::futex_waits {

struct Purpose {
  std::string what;        // what the thread waits for: "std::future::get()"
  std::string other_side;  // who ends such a wait: "the promise or task that sets it"
  // The object can only be a lock. Then the thread that holds the lock ends the wait.
  bool is_lock = false;
};

// Always returns a Purpose. If no function on the stack is recognised, `what` is "a futex".
Purpose find_purpose(const model::Stack& stack);

// True if a function on the stack shows what the futex belongs to. Otherwise the futex may be a variable of the
// program.
bool is_recognised(const model::Stack& stack);

}  // namespace forksight::futex_waits
