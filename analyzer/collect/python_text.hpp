// The text of CPython's traceback dumper (Python/traceback.c; what faulthandler prints).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.hpp"

namespace forksight::collect {

// One entry a thread, those without frames left out. The stack that names no thread is that of `writer`; if the same
// thread comes twice, the first one counts. The text is hostile input: what is no line of the dumper is passed over.
std::vector<model::PythonThread> parse_python_stacks(std::string_view text, std::uint64_t writer);

}  // namespace forksight::collect
