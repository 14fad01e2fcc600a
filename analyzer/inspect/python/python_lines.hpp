// From an instruction of a code object to its line, with the tables of CPython, read as in its Objects/codeobject.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inspect/python/python_layout.hpp"

namespace forksight::inspect {

// `address`: bytes from the first instruction of the code; negative before it. 0: the instruction has no line, or the
// table is cut before it. The table is hostile input.
int find_python_line(PythonLines kind, std::span<const std::byte> table, int first_line, std::int64_t address);

}  // namespace forksight::inspect
