// A core file as evidence: of the kernel, of gcore, of systemd's coredumpctl.
#pragma once

#include <string>

#include "image/image.hpp"
#include "result.hpp"

namespace forksight::image {

struct CoreOptions {
  std::string exe;  // the program's file, if it is not where it was
};

// Pages that the core leaves out are read from the files that were mapped, if they are the same still: by build-id,
// which the first page of each tells, and that is dumped by default (core(5), coredump_filter bit 4). An error is one
// sentence: what the file is instead of a core, or that `exe` is another program.
Result<Image> open_core(const std::string& path, const CoreOptions& options = {});

}  // namespace forksight::image
