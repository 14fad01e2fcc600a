// Removes the escape sequences for colours and links from a text.
#pragma once

#include <string>
#include <string_view>

namespace forksight::test {

inline std::string without_escapes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("\x1b[")) {
      text.remove_prefix(text.find('m') + 1);
    } else if (text.starts_with("\x1b]8;")) {
      text.remove_prefix(text.find("\x1b\\") + 2);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace forksight::test
