// Reads the notes of programs, libraries and cores (elf(5), PT_NOTE). Notes are hostile input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace forksight::image {

struct ElfNote {
  std::uint32_t type = 0;  // NT_... of <elf.h>; its meaning depends on `owner`
  std::string_view owner;  // "GNU", "CORE"
  std::span<const std::byte> body;
};

// Calls `visit` for each note of the segment `notes`, in order, until `visit` returns false. `alignment` is the
// segment's p_align. A note that is cut ends the list.
void for_each_note(std::span<const std::byte> notes, std::uint64_t alignment,
                   const std::function<bool(const ElfNote&)>& visit);

}  // namespace forksight::image
