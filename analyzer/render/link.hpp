// Writes links from text to files, in the form that terminals understand (OSC 8).
#pragma once

#include <string>
#include <string_view>

namespace forksight::render {

// Returns a URI like "file://host/a/b%20c"; "" if the path is not absolute. Every byte of the path except letters,
// digits and "-._~/" is encoded. So no path can end the escape sequence that contains the URI.
std::string file_uri(std::string_view host, std::string_view path);

std::string link_start(std::string_view uri);
inline constexpr std::string_view kLinkEnd = "\x1b]8;;\x1b\\";

}  // namespace forksight::render
