// What a futex wait is for, as far as the functions on its stack tell.
#pragma once

#include <string>

#include "model/model.hpp"

namespace forksight::futex_waits {

struct Purpose {
  std::string what;        // "std::future::get()"
  std::string other_side;  // who ends such a wait: "the promise or task that sets it"
};

// For any wait there is an answer; "a futex" where nothing is recognised.
Purpose find_purpose(const model::Stack& stack);

// A function on the stack tells what the futex belongs to. If none does, it may be a word of the program's own.
bool is_recognised(const model::Stack& stack);

}  // namespace forksight::futex_waits
