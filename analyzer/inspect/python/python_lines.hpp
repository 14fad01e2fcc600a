// From an instruction of a code object to its line: the tables of CPython, as its Objects/codeobject.c reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inspect/python/python_layout.hpp"

namespace forksight::inspect {

// `address`: bytes from the code's first instruction; negative before that. 0: the instruction has no line, or the
// table is cut before it. The table is hostile input.
int find_python_line(PythonLines kind, std::span<const std::byte> table, int first_line, std::int64_t address);

}  // namespace forksight::inspect
