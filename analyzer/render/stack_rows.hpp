// A stack on a page: the user's own frames, a row each; all are in the JSON report.
#pragma once

#include <filesystem>

#include "model/stack.hpp"
#include "render/page.hpp"

namespace forksight::render {

// Nothing if no frame is known. Sources below `cwd` are shown relative to it.
void add_stack(Page& page, const model::Stack& stack, const std::filesystem::path& cwd);

}  // namespace forksight::render
