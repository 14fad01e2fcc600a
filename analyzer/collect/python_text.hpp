// Parses the text that CPython's traceback dumper writes (Python/traceback.c), for example for faulthandler.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/model.hpp"

namespace forksight::collect {

// Returns one entry for each thread with frames. If the text names no thread for a stack, the stack belongs to the
// thread `writer`. If a thread occurs twice, its first entry counts. The text is hostile input. Lines that the dumper
// does not write are skipped.
std::vector<model::PythonThread> parse_python_stacks(std::string_view text, std::uint64_t writer);

}  // namespace forksight::collect
