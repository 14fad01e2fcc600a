// The names of enumerators, as the compiler writes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace forksight {

// Returns the names of the enumerators with these values; "" for a value without an enumerator. The compiler writes all
// values into one text, as in "kValues = {Kind::kMutex, (Kind)1, Kind::kSpin}". One text for all values compiles much
// faster than a text for each value.
template <auto... kValues>
consteval std::array<std::string_view, sizeof...(kValues)> names_of_enumerators() {
  constexpr std::string_view kMark = "kValues = ";
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find(kMark) + kMark.size() + 1);  // gcc writes {} around the values, clang <>
  // The length of " (Kind". This text begins each value without a name except the first. The compiler takes a step for
  // each character that is not skipped.
  std::size_t unnamed = 0;
  std::array<std::string_view, sizeof...(kValues)> names;
  for (std::string_view& name : names) {
    if (text.starts_with(" (")) {
      if (unnamed == 0) unnamed = text.find(')');
      text.remove_prefix(text.find_first_of(",;]", unnamed) + 1);
      continue;
    }
    std::string_view value = text.substr(0, text.find_first_of(",;]"));
    text.remove_prefix(value.size() + 1);
    while (value.ends_with('}') || value.ends_with('>')) value.remove_suffix(1);
    const bool is_named = value.find('(') == std::string_view::npos && value.find("::") != std::string_view::npos;
    name = is_named ? value.substr(value.rfind(':') + 1) : std::string_view();
  }
  return names;
}

// The same names as a table without pointers: `text` is all names in a row, and `ends` has the place in `text` where
// each name ends. The loader has nothing to relocate in such a table. The compiler's own text need not be in the
// binary: it repeats the full name of the enum for each value.
template <std::size_t kCount, std::size_t kLength>
struct EnumeratorNames {
  std::array<char, kLength> text{};
  std::array<std::uint16_t, kCount> ends{};

  constexpr std::string_view operator[](std::uint64_t place) const {
    if (place >= kCount) return {};
    const std::size_t begin = place == 0 ? 0 : ends[place - 1];
    return {text.data() + begin, ends[place] - begin};
  }
};

template <auto... kValues>
consteval auto table_of_enumerators() {
  constexpr auto kNames = names_of_enumerators<kValues...>();
  constexpr auto kSize = [](const auto& names) {
    std::pair<std::size_t, std::size_t> size;  // of entries up to the last name, and of characters
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty()) size.first = i + 1;
      size.second += names[i].size();
    }
    return size;
  }(kNames);
  static_assert(kSize.second <= UINT16_MAX);
  EnumeratorNames<kSize.first, kSize.second> table;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kSize.first; ++i) {
    for (const char letter : kNames[i]) table.text[length++] = letter;
    table.ends[i] = static_cast<std::uint16_t>(length);
  }
  return table;
}

// Every enumerator has a value below kEnumerators, except in enums of flags. An enum of flags has 32 bits.
inline constexpr std::size_t kEnumerators = 128;

template <class Enum>
std::string_view name_of_value(std::uint64_t value) {
  static constexpr auto kNames = []<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
    return table_of_enumerators<static_cast<Enum>(kPlaces)...>();
  }
  (std::make_index_sequence<kEnumerators>());
  return kNames[value];
}

template <class Enum>
std::string_view name_of_bit(std::uint64_t bit) {
  static constexpr auto kNames = []<std::size_t... kPlaces>(std::index_sequence<kPlaces...>) {
    return table_of_enumerators<static_cast<Enum>(std::uint32_t{1} << kPlaces)...>();
  }
  (std::make_index_sequence<32>());
  return kNames[bit];
}

}  // namespace forksight
