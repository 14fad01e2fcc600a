// The names of enumerators, as the compiler writes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace forksight {

// The name of the enumerator with this value; empty if there is none.
template <auto kValue>
consteval std::string_view name_of_enumerator() {
  constexpr std::string_view kMark = "kValue = ";
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find(kMark) + kMark.size());
  text = text.substr(0, text.find_first_of(";]"));
  if (text.find('(') != std::string_view::npos || text.find("::") == std::string_view::npos) return "";
  return text.substr(text.rfind(':') + 1);
}

// All named values of an enum are below this. Enums of flags have 32 bits.
inline constexpr std::size_t kEnumerators = 128;

template <class Enum>
std::string_view name_of_value(std::uint64_t value) {
  static constexpr auto kNames = []<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
    return std::array{name_of_enumerator<static_cast<Enum>(kPlaces)>()...};
  }
  (std::make_index_sequence<kEnumerators>());
  return value < kNames.size() ? kNames[value] : std::string_view();
}

template <class Enum>
std::string_view name_of_bit(std::uint64_t bit) {
  static constexpr auto kNames = []<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
    return std::array{name_of_enumerator<static_cast<Enum>(std::uint32_t{1} << kPlaces)>()...};
  }
  (std::make_index_sequence<32>());
  return bit < kNames.size() ? kNames[bit] : std::string_view();
}

}  // namespace forksight
