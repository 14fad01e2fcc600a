// Links from text to files, as terminals understand them (OSC 8).
#pragma once

#include <string>
#include <string_view>

namespace forksight::render {

// "file://host/a/b%20c": every byte but letters, digits and "-._~/" is encoded, so that no path can end the escape
// sequence that contains it. "" if the path is not absolute.
std::string file_uri(std::string_view host, std::string_view path);

std::string link_start(std::string_view uri);
inline constexpr std::string_view kLinkEnd = "\x1b]8;;\x1b\\";

}  // namespace forksight::render
