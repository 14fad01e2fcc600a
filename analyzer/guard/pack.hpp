// Turns the model into bytes and back. A child process that reads (child.hpp) passes the bytes to its parent. Both
// processes run the same program, so the format has no version. The child may run foreign code by the time it answers.
// So everything in the bytes is checked: sizes, values of enums, and the ids by which the parts of a model refer to
// each other.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/model.hpp"

namespace forksight::guard {

std::string pack(const model::Model& model);
// nullopt: the bytes are no model.
std::optional<model::Model> unpack(std::string_view bytes);

// True if each id in the model is a valid index.
bool are_ids_valid(const model::Model& model);

}  // namespace forksight::guard
