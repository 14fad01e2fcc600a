// Formats one line of the dump for people.
#pragma once

#include <cstdint>
#include <string>

#include "dump/fields.hpp"

namespace forksight::dump {

// Formats the line. `started_ns`: the time when the file was created. Other times are shown relative to this time.
std::string text_of_line(const Json& line, std::uint64_t started_ns);

}  // namespace forksight::dump
