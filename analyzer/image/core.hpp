// Reads a core file. The kernel, gcore or systemd's coredumpctl may have written it.
#pragma once

#include <string>

#include "image/image.hpp"
#include "result.hpp"

namespace forksight::image {

struct CoreOptions {
  std::string exe;  // the program's file, if it is no longer at the path that it had
};

// The core may leave out pages of mapped files. These pages are read from the files, if the files are unchanged. The
// build-id shows whether a file is unchanged. The build-id is in the first page of each file, and the kernel dumps this
// page by default (core(5), coredump_filter bit 4). An error is one sentence: the file is not a core that can be read,
// or `exe` is another program.
Result<Image> open_core(const std::string& path, const CoreOptions& options = {});

}  // namespace forksight::image
