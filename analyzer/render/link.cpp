#include "render/link.hpp"

#include <fmt/format.h>

#include <iterator>

namespace forksight::render {
namespace {

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

std::string encode(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    if (is_alphanumeric(c) || kept.find(c) != std::string_view::npos) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace

std::string file_uri(std::string_view host, std::string_view path) {
  if (!path.starts_with('/')) return {};
  return fmt::format("file://{}{}", encode(host, "-."), encode(path, "-._~/"));
}

std::string link_start(std::string_view uri) { return fmt::format("\x1b]8;;{}\x1b\\", uri); }

}  // namespace forksight::render
