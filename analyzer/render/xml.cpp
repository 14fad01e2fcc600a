#include "render/xml.hpp"

#include <algorithm>

#include "render/printable.hpp"

namespace forksight::render {

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char one : printable(text)) {
    switch (one) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += one;
    }
  }
  return escaped;
}

std::string escape_xml_lines(std::string_view text) {
  std::string escaped;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    escaped += escape_xml(text.substr(start, end - start)) + "\n";
    start = end + 1;
  }
  return escaped;
}

}  // namespace forksight::render
