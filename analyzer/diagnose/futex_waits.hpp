// Tells what a thread waits for in a futex wait. The function names on the thread's stack show this.
#pragma once

#include <string>

#include "model/model.hpp"

namespace forksight::futex_waits {

struct Purpose {
  std::string what;        // what it waits for: "std::future::get()"
  std::string other_side;  // who ends such a wait: "the promise or task that sets it"
  bool is_lock = false;    // it is a lock, and nothing else: the thread that holds it ends the wait
};

// Always returns an answer: "a futex" if no function is recognised.
Purpose find_purpose(const model::Stack& stack);

// True if a function on the stack shows what the futex belongs to. If not, the futex may be a variable of the program.
bool is_recognised(const model::Stack& stack);

}  // namespace forksight::futex_waits
