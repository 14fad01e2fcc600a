// A stack on a page: the user's own frames, a row each; what lies between them is folded. All are in the JSON report.
#pragma once

#include "model/stack.hpp"
#include "render/page.hpp"
#include "render/text.hpp"

namespace forksight::render {

// Nothing if no frame is known. Sources below `options.cwd` are shown relative to it. With `options.full` every frame
// has its row. Without it, frames of libraries and runtimes become one line for each run of them, "(10 frames of
// libtorch_cpu.so, libgomp.so.1)"; the runtime's frames that started the thread are left out. Of a stack without a
// frame of the user's, the innermost frames are shown.
void add_stack(Page& page, const model::Stack& stack, const TextOptions& options);

}  // namespace forksight::render
