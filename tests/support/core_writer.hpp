// Writes core files of what a live image shows, as the kernel and gcore do, and as they never would. Small ones: of a
// mapping larger than `whole_up_to` only the top, from the lowest stack pointer in it on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "image/image.hpp"

namespace forksight::test {

struct CoreScene {
  bool has_files = true;          // NT_FILE
  bool has_auxiliary = true;      // NT_AUXV
  bool has_first_pages = true;    // of mapped files: where the build-id is
  bool has_file_segments = true;  // program headers for what is not dumped; gcore leaves them out
  std::uint16_t machine = 62;     // EM_X86_64
  std::int32_t signal = 0;        // that the first thread got
  std::uint64_t whole_up_to = 1U << 20U;
};

std::vector<std::byte> make_core(const image::Image& live, const CoreScene& scene = {});

void write_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes);

}  // namespace forksight::test
