// The cures that are on. The command passes them to the shim as a list of words, separated by commas: "auto", "none",
// names of cures.def, and NAME=N for a cure that takes a value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forksight::trace {

enum class Cure : std::uint32_t {
#define FORKSIGHT_CURE(id, name, is_sound, value, unit, words) id,
#include "forksight/trace/cures.def"
};

struct CureTerms {
  const char* name;
  bool is_sound;
  std::uint32_t value;  // the value if the list does not say NAME=N; 0: the cure takes no value
  const char* unit;
  const char* words;
};

inline constexpr CureTerms kCures[] = {
#define FORKSIGHT_CURE(id, name, is_sound, value, unit, words) {name, is_sound != 0, value, unit, words},
#include "forksight/trace/cures.def"
};
inline constexpr std::size_t kCureCount = sizeof kCures / sizeof *kCures;
static_assert(kCureCount <= 32);

struct CureSet {
  std::uint32_t bits = 0;
  std::uint32_t values[kCureCount] = {};

  constexpr bool has(Cure cure) const { return (bits >> static_cast<std::uint32_t>(cure) & 1U) != 0; }
  constexpr std::uint32_t value(Cure cure) const { return values[static_cast<std::uint32_t>(cure)]; }
  constexpr void put(Cure cure, bool on) { put(static_cast<std::size_t>(cure), on); }
  constexpr void put(std::size_t cure, bool on, std::uint32_t value = 0) {
    const std::uint32_t bit = std::uint32_t{1} << cure;
    bits = on ? bits | bit : bits & ~bit;
    values[cure] = !on ? 0 : value != 0 ? value : kCures[cure].value;
  }
};

// The first invalid word of a list. `word` is null if the whole list is valid.
struct CureMistake {
  const char* word = nullptr;
  std::size_t bytes = 0;
};

// Reads the words of `text` in their order, up to the first invalid one. A name adds its cure to `out`, "auto" adds the
// sound ones, and "none" removes all, also those that `out` had before. `text` may be null. The function allocates
// nothing and uses no locale, because the shim calls it.
constexpr CureMistake read_cures(const char* text, CureSet& out) {
  constexpr std::uint32_t kMostValue = 1'000'000;
  const auto is_word = [](const char* at, const char* end, const char* word) {
    for (; at != end && *word != '\0' && *at == *word; ++at) ++word;
    return at == end && *word == '\0';
  };
  for (const char* at = text; at != nullptr && *at != '\0';) {
    const char* end = at;
    while (*end != '\0' && *end != ',') ++end;
    const char* name_end = at;
    while (name_end != end && *name_end != '=') ++name_end;
    bool known = false;
    std::uint32_t value = 0;
    bool has_number = name_end != end && name_end + 1 != end;
    for (const char* digit = name_end; digit != end && ++digit != end;) {
      has_number = has_number && *digit >= '0' && *digit <= '9' && value < kMostValue;
      if (has_number) value = value * 10 + static_cast<std::uint32_t>(*digit - '0');
    }
    const bool is_alone = name_end == end;
    for (std::size_t i = 0; i < kCureCount; ++i) {
      const bool is_meant = is_word(at, name_end, kCures[i].name);
      if (!is_meant && !(is_alone && kCures[i].is_sound && is_word(at, end, "auto"))) continue;
      if (!is_alone && (!has_number || value == 0 || kCures[i].value == 0)) break;
      out.put(i, true, value);
      known = true;
    }
    if (is_alone && is_word(at, end, "none")) {
      out = {};
      known = true;
    }
    if (!known) return {at, static_cast<std::size_t>(end - at)};
    at = *end == ',' ? end + 1 : end;
  }
  return {};
}

}  // namespace forksight::trace
