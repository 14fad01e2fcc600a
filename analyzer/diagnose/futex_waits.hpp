// What a futex wait is for, as far as the function names on its stack show.
#pragma once

#include <string>

#include "model/model.hpp"

namespace forksight::futex_waits {

struct Purpose {
  std::string what;        // "std::future::get()"
  std::string other_side;  // who ends such a wait: "the promise or task that sets it"
};

// Every wait has an answer: "a futex" if nothing is recognised.
Purpose find_purpose(const model::Stack& stack);

// A function on the stack shows what the futex belongs to. Otherwise it may be a variable of the program itself.
bool is_recognised(const model::Stack& stack);

}  // namespace forksight::futex_waits
