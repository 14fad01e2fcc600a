// Renders the report for a person whose job hangs. Each finding takes about one screen. It says what hangs, what the
// thread waits for, who holds that object, why the holder cannot release it, and what to do.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "render/page.hpp"

namespace forksight::render {

struct TextOptions : PageOptions {
  bool full = false;          // shows every frame of every stack
  std::filesystem::path cwd;  // a path below this folder is shown relative to it; empty: paths are not changed
};

// Returns the report as text. The text ends with a newline, and contains no control characters from traces.
// `unexplained` has one sentence for each hanging process that no finding explains.
std::string render_text(const model::Model& model, const std::vector<Finding>& findings,
                        const TextOptions& options = {}, const std::vector<std::string>& unexplained = {});

// Renders a message of forksight itself. The message is wrapped only if the width of the page is known.
std::string render_line(std::string_view text, const TextOptions& options = {});

// Renders a title, and then an item for each of `lines`.
std::string render_list(std::string_view title, const std::vector<std::string>& lines, const TextOptions& options = {});

// Keeps the first of these sentences, and counts the others in one further sentence. `what`: "unexplained hangs". With
// `options.full`, keeps all.
std::vector<std::string> fold(const std::vector<std::string>& sentences, std::string_view what,
                              const TextOptions& options);

// Merges sentences about what could not be seen. If several sentences say the same about different files, they become
// one sentence.
std::vector<std::string> merge_limits(const std::vector<std::string>& limits);

// Merges the sentences as merge_limits() does. Renders them for the end of a report; "" if `limits` is empty.
std::string render_limits(const std::vector<std::string>& limits, const TextOptions& options = {});

}  // namespace forksight::render
