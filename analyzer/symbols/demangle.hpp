// Demangles names of C++ functions and variables. The owner of a file chooses the names in it. A part of a name may
// refer to an earlier part, which may itself refer twice to a part before it. So a name of 250 bytes may stand for a
// text of gigabytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace forksight::symbols {

// The longest name, and the longest text for a name, that forksight shows.
inline constexpr std::size_t kMaxNameBytes = std::size_t{16} << 10U;

// Returns the text for a mangled name. nullopt: the name is no name of C++, or the name or its text is too long.
std::optional<std::string> demangle(const char* name);

}  // namespace forksight::symbols
