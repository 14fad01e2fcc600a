// One screen a finding, for a person with a hung job: what hangs, on what, who holds it, why they cannot let go, what
// to do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::render {

struct TextOptions {
  bool colour = false;        // see wants_colour
  bool limits = true;         // say what could not be seen
  std::filesystem::path cwd;  // sources below it are shown relative to it; empty: as they are
};

// A terminal, and NO_COLOR and TERM=dumb do not forbid it.
bool wants_colour(int fd);

// Ends with a newline. Bytes out of traces never reach the terminal as control characters.
std::string render_text(const model::Model& model, const std::vector<Finding>& findings,
                        const TextOptions& options = {});

}  // namespace forksight::render
