#include "proc/process_traits.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <sstream>
#include <string>

#include "files/open_file.hpp"
#include "proc/kernel_work.hpp"
#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

std::optional<bool> runs_x86_64(std::int32_t tid) {
  const std::string path = proc_path(tid, "exe");
  const files::Descriptor program = files::open_regular(path);
  Elf64_Ehdr header;
  const bool is_read =
      program && files::read_at(program.get(), 0, std::as_writable_bytes(std::span(&header, 1))) == sizeof header;
  if (!is_read) {
    // If the file cannot be read, the mappings decide: only a 64-bit program has memory above 4 GiB.
    const std::vector<Mapping> mappings = read_mappings(tid);
    if (mappings.empty()) return std::nullopt;
    return std::ranges::any_of(mappings, [](const Mapping& one) { return one.start >> 32U != 0; });
  }
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_machine == EM_X86_64;
}

files::Owner owner_of(std::int32_t tid) {
  const std::string status = read_file(proc_path(tid, "status")).text;
  const auto numbers = [&](std::string_view name) {
    std::vector<std::uint32_t> found;
    std::istringstream words(std::string(find_field(status, name).value_or("")));
    for (std::uint32_t number = 0; words >> number;) found.push_back(number);
    return found;
  };
  // The four numbers are the real, effective, saved and file system id. When a process opens a file, the kernel
  // compares the file system id.
  const std::vector<std::uint32_t> uids = numbers("Uid");
  const std::vector<std::uint32_t> gids = numbers("Gid");
  files::Owner owner;
  if (uids.size() != 4 || gids.size() != 4) return owner;
  owner.uid = uids.back();
  owner.gid = gids.back();
  owner.groups = numbers("Groups");
  return owner;
}

bool has_io_uring(const std::vector<Mapping>& mappings) {
  return std::ranges::any_of(mappings, is_ring_link, &Mapping::path);
}

bool has_libc(const std::vector<Mapping>& mappings) {
  return std::ranges::any_of(mappings, [](const Mapping& one) {
    return one.path.find("/libc.so.6") != std::string::npos || one.path.find("/libc-2.") != std::string::npos;
  });
}

}  // namespace forksight::proc
