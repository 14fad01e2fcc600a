// Which glibc a process has, and which layouts are known for it. All layouts here are for x86-64.
//   The shim includes these headers, so they need only fixed-width integers, and allocate nothing. Each layout names
//   the versions for which it was compared with glibc's sources. For any other version, callers must report that the
//   version is unknown, and must not guess.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forksight::abi {

struct Version {
  std::uint8_t major = 0;  // 0: not known
  std::uint8_t minor = 0;

  constexpr bool is_known() const { return major != 0; }
  friend constexpr bool operator==(Version one, Version other) {
    return one.major == other.major && one.minor == other.minor;
  }
};

struct Versions {
  Version first;
  Version last;

  constexpr bool have(Version version) const {
    const auto number = [](Version of) { return of.major * 256 + of.minor; };
    return number(first) <= number(version) && number(version) <= number(last);
  }
};

// Parses "2.36", or "2.42.9000" for a version in development, as gnu_get_libc_version() returns it. Any other text
// gives an unknown version. `text` may be null.
constexpr Version parse_version(const char* text) {
  unsigned numbers[2] = {};
  for (unsigned& number : numbers) {
    if (text == nullptr || *text < '0' || *text > '9') return {};
    for (; *text >= '0' && *text <= '9'; ++text) {
      number = number * 10 + static_cast<unsigned>(*text - '0');
      if (number > 255) return {};
    }
    if (&number == &numbers[0] && *text++ != '.') return {};
  }
  if (*text != '\0' && *text != '.') return {};
  return {static_cast<std::uint8_t>(numbers[0]), static_cast<std::uint8_t>(numbers[1])};
}

// Which of its two layouts a condition variable has (condition.hpp). The version of glibc does not show the layout,
// because distributions have given the new layout to old versions.
enum class ConditionKind : std::uint8_t { kUnknown = 0, kWithReferences = 1, kWithoutReferences = 2 };

// What is known about the libc of a process.
struct Libc {
  Version version;
  ConditionKind condition = ConditionKind::kUnknown;
};

// Copies a structure from memory that may be misaligned, and that other threads may change meanwhile.
template <class T>
inline T load(const void* memory) {
  T value;
  __builtin_memcpy(&value, memory, sizeof value);
  return value;
}

}  // namespace forksight::abi
