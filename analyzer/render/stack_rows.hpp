// Shows a stack on a page. Each frame of the user has a row. One line stands for all frames between two of these rows.
// The JSON report has all frames.
#pragma once

#include "model/stack.hpp"
#include "render/page.hpp"
#include "render/text.hpp"

namespace forksight::render {

// Adds the stack to the page; adds nothing if no frame is known. If a source file is below `options.cwd`, its path is
// shown relative to `options.cwd`. With `options.full` every frame has a row. Otherwise consecutive frames of libraries
// and runtimes become one line, "(10 frames of libtorch_cpu.so, libgomp.so.1)". The frames of the runtime that started
// the thread are then left out. Consecutive frames of one module that have no names become one row, with a count:
// "app+0x1171  (5 frames without names)". If no frame is the user's, some of the innermost frames are shown.
void add_stack(Page& page, const model::Stack& stack, const TextOptions& options);

}  // namespace forksight::render
