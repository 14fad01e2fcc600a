// Writes core files from a live image. Tests choose whether a core is like one of the kernel or of gcore, or like
// neither.
// To keep the files small, only the end of a mapping larger than `whole_up_to` is dumped: its last 64 KiB, or more if a
// lower stack pointer lies in the mapping. In that case the dump begins at the page of the lowest stack pointer.
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
  bool has_first_pages = true;    // the first page of each mapped file, which has the build-id
  bool has_file_segments = true;  // program headers also for file mappings that are not dumped, which gcore leaves out
  std::uint16_t machine = 62;     // EM_X86_64
  std::int32_t signal = 0;        // the signal that the first thread received
  std::uint64_t whole_up_to = 1U << 20U;
};

std::vector<std::byte> make_core(const image::Image& live, const CoreScene& scene = {});

void write_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes);

}  // namespace forksight::test
