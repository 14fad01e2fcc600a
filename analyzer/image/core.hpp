// A core file as evidence: of the kernel, of gcore, of systemd's coredumpctl.
#pragma once

#include <string>

#include "image/image.hpp"
#include "result.hpp"

namespace forksight::image {

struct CoreOptions {
  std::string exe;  // the program's file, if it is not where it was
};

// Pages that the core leaves out are read from the files that were mapped, if these are unchanged. The build-id
// decides: it is in the first page of each file, which is dumped by default (core(5), coredump_filter bit 4). An error
// is one sentence: the file is something else than a core, or `exe` is another program.
Result<Image> open_core(const std::string& path, const CoreOptions& options = {});

}  // namespace forksight::image
