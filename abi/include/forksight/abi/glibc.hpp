// Which glibc a process has, and what of its layouts is known by that. All layouts here are of x86-64.
//
// These headers are read by the shim, so they need nothing but fixed-width integers, and allocate nothing. Each layout
// says for which versions it was compared with glibc's sources; of another version nothing is known, and whoever asks
// must say so and not guess.
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

// "2.36", or "2.42.9000" of a version that is being developed, as gnu_get_libc_version() says it. Not known: anything
// else. `text` may be null.
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

// Which of its two layouts a condition variable has (condition.hpp). The version does not tell: distributions have
// given the new one to old versions.
enum class ConditionKind : std::uint8_t { kUnknown = 0, kWithReferences = 1, kWithoutReferences = 2 };

// What is known of the libc of a process.
struct Libc {
  Version version;
  ConditionKind condition = ConditionKind::kUnknown;
};

// A structure out of memory that may be misaligned and may change meanwhile.
template <class T>
inline T load(const void* memory) {
  T value;
  __builtin_memcpy(&value, memory, sizeof value);
  return value;
}

}  // namespace forksight::abi
