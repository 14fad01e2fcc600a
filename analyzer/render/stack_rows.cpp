#include "render/stack_rows.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "diagnose/words.hpp"

namespace forksight::render {
namespace {

using words::Whose;

// If a stack has more than kMostInner + kMostOuter frames of the user, only the innermost and outermost are shown. Such
// a stack is usually a deep recursion.
constexpr std::size_t kMostInner = 16;
constexpr std::size_t kMostOuter = 8;
constexpr std::size_t kMostForeign = 6;        // rows of a stack in which no frame is the user's
constexpr std::size_t kMostOfInterpreter = 1;  // such rows if the stack has only frames of an interpreter and of libc
constexpr std::size_t kMostNames = 4;

using Frames = std::span<const model::Frame>;

// Makes a path below the working directory relative to that directory, so that users can click the path and open it.
std::string shorten(const std::string& file, const std::filesystem::path& cwd) {
  std::string base = cwd.string();
  if (base.empty() || base == "/") return file;
  if (!base.ends_with('/')) base += '/';
  return file.starts_with(base) ? file.substr(base.size()) : file;
}

// True for an absolute path of a file that exists. Another program may resolve a relative path differently.
bool can_link(const std::string& file) {
  std::error_code ignored;
  return file.starts_with('/') && std::filesystem::is_regular_file(file, ignored);
}

// Returns the place in the file of the code, as addr2line takes it: "libfoo.so+0x1234".
std::string place_in_module(const model::Frame& frame) {
  return frame.module.empty() ? "unknown code" : fmt::format("{}+{:#x}", words::base_name(frame.module), frame.offset);
}

bool has_no_name(const model::Frame& frame) { return frame.function.empty() && frame.file.empty(); }

// True if frame `i` and the frame before it have no names and are in the same module. One row can stand for both.
bool continues_nameless(Frames frames, std::size_t i) {
  return i > 0 && has_no_name(frames[i]) && has_no_name(frames[i - 1]) && frames[i].module == frames[i - 1].module;
}

// Adds a row for the frame. If `count` is greater than 1, the row also stands for the next frames, which have no names.
void add_frame(Page& page, const model::Frame& frame, std::size_t count, const TextOptions& options) {
  std::string where;
  if (!frame.file.empty()) {
    where = shorten(frame.file, options.cwd);
    if (frame.line > 0) where += fmt::format(":{}", frame.line);
  } else if (!frame.function.empty() && !frame.module.empty()) {
    where = place_in_module(frame);
  }
  std::string note = frame.inlined ? "(inlined)" : "";
  if (frame.approximate) note += note.empty() ? "(approximate)" : " (approximate)";
  if (count > 1) note += fmt::format("{}({} frames without names)", note.empty() ? "" : " ", count);
  const bool is_linked = options.colour && options.link_host && can_link(frame.file);
  page.row({.name = frame.function.empty() ? place_in_module(frame) : frame.function,
            .place = where.empty() ? note : where,
            .note = where.empty() ? "" : note,
            .path = is_linked ? std::string_view(frame.file) : std::string_view()});
}

// Adds a line such as "(10 frames of libtorch_cpu.so, libgomp.so.1)". The library with the most frames comes first.
void fold(Page& page, Frames frames) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const model::Frame& frame : frames) {
    const std::string code = words::code_of(frame);
    const auto known = std::ranges::find(counts, code, [](const auto& entry) { return entry.first; });
    if (known == counts.end()) {
      counts.emplace_back(code, 1);
    } else {
      ++known->second;
    }
  }
  std::ranges::stable_sort(counts, std::ranges::greater{}, [](const auto& entry) { return entry.second; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < counts.size() && i < kMostNames; ++i) names.push_back(counts[i].first);
  const std::string rest = counts.size() > kMostNames ? fmt::format(" and {} more", counts.size() - kMostNames) : "";
  page.add_note(
      fmt::format("({} of {}{})", words::count(frames.size(), "frame", "frames"), fmt::join(names, ", "), rest));
}

bool is_own(const model::Frame& frame) {
  return words::whose(frame) == Whose::kUser || frame.function == model::kSignalFrame;
}

bool is_of_interpreter(const model::Frame& frame) {
  const std::string_view module = words::base_name(frame.module);
  return !frame.python && (module.starts_with("python") || module.starts_with("libpython"));
}

// Chooses the frames that get a row.
std::vector<bool> choose(Frames frames) {
  std::vector<bool> is_shown(frames.size());
  std::size_t own = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (is_own(frames[i]) && !continues_nameless(frames, i)) ++own;
  }
  const bool has_user =
      std::ranges::any_of(frames, [](const auto& frame) { return words::whose(frame) == Whose::kUser; });
  const bool has_library =
      std::ranges::any_of(frames, [](const auto& frame) { return words::whose(frame) == Whose::kLibrary; });
  const bool has_only_runtime = !has_user && !has_library;
  // If no frame is the user's, the Python frames say more than the functions of the interpreter.
  const bool has_python = std::ranges::any_of(frames, &model::Frame::python);
  const auto is_telling = [&](const model::Frame& frame) {
    return has_python ? frame.python : !has_library || words::whose(frame) == Whose::kLibrary;
  };
  std::size_t seen = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (continues_nameless(frames, i)) {
      is_shown[i] = is_shown[i - 1];
    } else if (has_user) {
      if (!is_own(frames[i])) continue;
      is_shown[i] = own <= kMostInner + kMostOuter || seen < kMostInner || seen >= own - kMostOuter;
      ++seen;
    } else if (is_telling(frames[i])) {
      // The functions of an interpreter say little about the program that it runs.
      const bool is_interpreter = has_only_runtime && is_of_interpreter(frames[i]);
      is_shown[i] = seen < (is_interpreter ? kMostOfInterpreter : kMostForeign);
      ++seen;
    }
  }
  // If a line stands for only one frame, it is no shorter than the row of that frame. So a single frame of a library
  // gets its row. A single frame of a runtime does not get a row, because the name of the runtime says enough.
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const bool is_alone = (i == 0 || is_shown[i - 1]) && (i + 1 == frames.size() || is_shown[i + 1]);
    const bool has_name = words::whose(frames[i]) == Whose::kLibrary && !frames[i].function.empty();
    if (is_alone && has_name) is_shown[i] = true;
  }
  return is_shown;
}

}  // namespace

void add_stack(Page& page, const model::Stack& stack, const TextOptions& options) {
  if (!stack.known()) return;
  const Frames frames(stack.frames);
  const std::vector<bool> is_shown = options.full ? std::vector<bool>(frames.size(), true) : choose(frames);
  // The frames that started the thread tell the user nothing, so they are left out. They stay if no frame is the
  // user's, or if the user asked for all frames.
  const std::size_t user_end = words::find_user_part(stack).second;
  const std::size_t end = user_end == 0 || options.full ? frames.size() : user_end;
  for (std::size_t i = 0; i < end;) {
    const std::size_t first = i;
    if (is_shown[i]) {
      ++i;
      while (!options.full && i < end && is_shown[i] && continues_nameless(frames, i)) ++i;
      add_frame(page, frames[first], i - first, options);
      continue;
    }
    while (i < end && !is_shown[i]) ++i;
    fold(page, frames.subspan(first, i - first));
  }
  if (stack.cut) page.add_note("(outer frames were not recorded)");
}

}  // namespace forksight::render
