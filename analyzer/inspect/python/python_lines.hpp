// Finds the source line of an instruction of a Python code object. Reads the line tables as CPython does in
// Objects/codeobject.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "inspect/python/python_layout.hpp"

namespace forksight::inspect {

// `address`: the offset of the instruction from the first one, in bytes; may be negative. Returns 0 if the instruction
// has no line, or if the table ends before it. The table may be damaged, or made to mislead.
int find_python_line(PythonLines kind, std::span<const std::byte> table, int first_line, std::int64_t address);

}  // namespace forksight::inspect
