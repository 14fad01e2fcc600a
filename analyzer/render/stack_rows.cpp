#include "render/stack_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "diagnose/words.hpp"

namespace forksight::render {
namespace {

constexpr std::size_t kMostFrames = 6;
constexpr std::size_t kMostUnlined = 2;  // of them, before the first line of Python

// Below the working directory, relative to it: a path that can be clicked and opened.
std::string shorten(const std::string& file, const std::filesystem::path& cwd) {
  std::string base = cwd.string();
  if (base.empty() || base == "/") return file;
  if (!base.ends_with('/')) base += '/';
  return file.starts_with(base) ? file.substr(base.size()) : file;
}

void add_frame(Page& page, const model::Frame& frame, const std::filesystem::path& cwd) {
  std::string where;
  if (!frame.file.empty()) {
    where = shorten(frame.file, cwd);
    if (frame.line > 0) where += fmt::format(":{}", frame.line);
  } else if (!frame.module.empty()) {
    where = fmt::format("{}+{:#x}", words::base_name(frame.module), frame.offset);
  }
  if (frame.inlined) where += " (inlined)";
  if (frame.approximate) where += " (approximate)";
  page.row(frame.function.empty() ? "??" : frame.function, where);
}

}  // namespace

void add_stack(Page& page, const model::Stack& stack, const std::filesystem::path& cwd) {
  if (!stack.known()) return;
  const auto& frames = stack.frames;
  auto [first, last] = words::find_user_part(stack);
  if (first == last) last = frames.size();
  const std::size_t unlined = words::count_unlined(stack);
  if (unlined > kMostUnlined) {
    for (std::size_t i = first; i < first + kMostUnlined; ++i) add_frame(page, frames[i], cwd);
    page.row(fmt::format("({} more)", words::count(unlined - kMostUnlined, "frame", "frames")), "");
    first += unlined;
  }
  const std::size_t shown = std::min(last, first + kMostFrames);
  for (std::size_t i = first; i < shown; ++i) add_frame(page, frames[i], cwd);
  if (shown < last) page.row(fmt::format("({} more)", words::count(last - shown, "frame", "frames")), "");
  if (shown == last && stack.cut) page.row("(outer frames were not recorded)", "");
}

}  // namespace forksight::render
