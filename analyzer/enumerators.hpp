// The names of enumerators, as the compiler writes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace forksight {

// The names of the enumerators with these values; "" for a value that has none. The compiler writes all values into one
// text, as in "kValues = {Kind::kMutex, (Kind)1, Kind::kSpin}". That is much faster to compile than a text for each
// value.
template <auto... kValues>
consteval std::array<std::string_view, sizeof...(kValues)> names_of_enumerators() {
  constexpr std::string_view kMark = "kValues = ";
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find(kMark) + kMark.size() + 1);  // gcc writes {} around the values, clang <>
  std::array<std::string_view, sizeof...(kValues)> names;
  for (std::string_view& name : names) {
    std::string_view value = text.substr(0, text.find_first_of(",;]"));
    text.remove_prefix(value.size() + 1);
    while (value.ends_with('}') || value.ends_with('>')) value.remove_suffix(1);
    const bool is_named = value.find('(') == std::string_view::npos && value.find("::") != std::string_view::npos;
    name = is_named ? value.substr(value.rfind(':') + 1) : std::string_view();
  }
  return names;
}

// All named values of an enum are below this. Enums of flags have 32 bits.
inline constexpr std::size_t kEnumerators = 128;

template <class Enum>
std::string_view name_of_value(std::uint64_t value) {
  static constexpr auto kNames = []<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
    return names_of_enumerators<static_cast<Enum>(kPlaces)...>();
  }
  (std::make_index_sequence<kEnumerators>());
  return value < kNames.size() ? kNames[value] : std::string_view();
}

template <class Enum>
std::string_view name_of_bit(std::uint64_t bit) {
  static constexpr auto kNames = []<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
    return names_of_enumerators<static_cast<Enum>(std::uint32_t{1} << kPlaces)...>();
  }
  (std::make_index_sequence<32>());
  return bit < kNames.size() ? kNames[bit] : std::string_view();
}

}  // namespace forksight
