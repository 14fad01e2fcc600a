// One screen for each finding, for a person with a hung job: what hangs, what it waits for, who holds that, why the
// holder cannot release it, and what to do.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "render/page.hpp"

namespace forksight::render {

struct TextOptions : Paper {
  bool full = false;          // shows every frame of every stack
  std::filesystem::path cwd;  // paths below this folder are shown relative to it; empty: no change
};

// Returns the report as text. The text ends with a newline, and contains no control characters from traces.
// `unexplained`: a sentence for each process that hangs and that no finding explains.
std::string render_text(const model::Model& model, const std::vector<Finding>& findings,
                        const TextOptions& options = {}, const std::vector<std::string>& unexplained = {});

// Renders one line from forksight itself. It is wrapped only if the width of the page is known.
std::string render_line(std::string_view text, const TextOptions& options = {});

// Renders a title, and an item for each of `lines`.
std::string render_list(std::string_view title, const std::vector<std::string>& lines, const TextOptions& options = {});

// Merges sentences about what could not be seen. If several sentences make the same statement about different files,
// they become one sentence.
std::vector<std::string> merge_limits(const std::vector<std::string>& limits);

// Merges these sentences and renders them for the end of a report; "" if there are none.
std::string render_limits(const std::vector<std::string>& limits, const TextOptions& options = {});

}  // namespace forksight::render
