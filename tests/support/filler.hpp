// Gives the members of a struct of the model values: each list gets one item, each optional gets a value, each string
// gets a different text, each bool is true, each double is 0.5, each std::int32_t gets a different number. Other
// integers and enumerators keep their value, because some integers are indices of lists, and the only item of each list
// has the index 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "model/members.hpp"

namespace forksight::test {

class Filler {
 public:
  // Each string ends with `tail`.
  explicit Filler(std::string tail = "") : tail_(std::move(tail)) {}

  template <class T>
  void fill(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      value = "text " + std::to_string(++texts_) + tail_;
    } else if constexpr (requires { value.emplace_back(); }) {
      fill(value.emplace_back());
    } else if constexpr (requires { value.has_value(); }) {
      fill(value.emplace());
    } else if constexpr (std::is_array_v<T> || requires {
                           std::tuple_size<T>::value;
                           value.begin();
                         }) {
      for (auto& item : value) fill(item);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_same_v<T, double>) {
      value = 0.5;
    } else if constexpr (std::is_same_v<T, std::int32_t>) {
      value = ++numbers_;
    } else if constexpr (!std::is_arithmetic_v<T> && !std::is_enum_v<T>) {
      model::for_each_member(value, [this](auto& member) { fill(member); });
    }
  }
  int texts() const { return texts_; }

 private:
  std::string tail_;
  int texts_ = 0;
  std::int32_t numbers_ = 0;
};

}  // namespace forksight::test
