#include "image/modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "files/budgets.hpp"
#include "forksight/abi/mutex.hpp"
#include "image/elf_head.hpp"
#include "libc/libc_file.hpp"

namespace forksight::image {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

// True if the code of the file is mapped at the address where it would run. This is false for an ELF file that a
// debugger maps only to read it: such a file is no module.
bool is_code_mapped(const ElfHead& head, const proc::Mapping& first, const std::vector<proc::Mapping>& mappings) {
  const std::uint64_t bias = first.start - head.first_address;
  for (const Elf64_Phdr& segment : head.segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uint64_t code = bias + segment.p_vaddr;
    const auto after =
        std::upper_bound(mappings.begin(), mappings.end(), code,
                         [](std::uint64_t value, const proc::Mapping& mapping) { return value < mapping.start; });
    if (after == mappings.begin()) return false;
    const proc::Mapping& mapping = *std::prev(after);
    // Code that was moved to huge pages has no path any more.
    return code < mapping.end && mapping.executable && (mapping.path.empty() || mapping.path == first.path);
  }
  return false;
}

// Returns the numbers of the device and inode of the mapping. Mapping::device is text such as "fe:00". nullopt: the
// mapping has none, as in a core.
std::optional<files::MappedFile> mapped_file(const proc::Mapping& mapping) {
  const std::string_view device = mapping.device;
  const std::size_t colon = device.find(':');
  if (mapping.inode == 0 || colon == std::string_view::npos) return std::nullopt;
  files::MappedFile file;
  file.inode = mapping.inode;
  const auto parse = [](std::string_view text, std::uint32_t& out) {
    return std::from_chars(text.data(), text.data() + text.size(), out, 16).ec == std::errc{};
  };
  if (!parse(device.substr(0, colon), file.major) || !parse(device.substr(colon + 1), file.minor)) return std::nullopt;
  return file;
}

}  // namespace

std::string without_deleted(const std::string& path) {
  return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
}

std::vector<symbols::Module> find_modules(const files::Owner& owner, const Memory& memory,
                                          const std::vector<proc::Mapping>& mappings, const OtherPlaces& other_places,
                                          std::vector<std::string>& limits) {
  std::vector<symbols::Module> modules;
  std::size_t copied = 0;
  std::size_t heads = 0;
  for (const proc::Mapping& mapping : mappings) {
    const bool is_vdso = mapping.path == "[vdso]";
    if (mapping.offset != 0 || (!is_vdso && !mapping.path.starts_with('/'))) continue;
    if (!modules.empty() && mapping.start < modules.back().end) continue;
    if (++heads > files::kMaxModules) {
      limits.push_back(fmt::format("more than {} files are mapped from their beginning; some frames have no names",
                                   files::kMaxModules));
      break;
    }
    const auto head = read_mapped_head(memory, mapping.start);
    if (!head || !is_code_mapped(*head, mapping, mappings)) continue;
    symbols::Module module;
    module.path = without_deleted(mapping.path);
    module.bias = mapping.start - head->first_address;
    module.start = mapping.start;
    module.end = module.bias + head->end_address;
    module.build_id = head->build_id;

    module.mapped = mapped_file(mapping);

    bool is_found = false;
    module.owner = owner;
    std::vector<FilePlace> places;
    if (!is_vdso) {  // no file contains the vdso
      places = other_places(mapping);
      places.insert(places.begin(), {module.path, owner});
    }
    for (const FilePlace& place : places) {
      const auto found = read_file_head(place.owner, place.path, module.mapped);
      if (!found || !found->is_same_file(*head)) continue;
      if (place.path != module.path) module.file = place.path;
      module.owner = place.owner;
      is_found = true;
      break;
    }
    if (!is_found) {
      auto bytes = copy_mapped_file(memory, mapping.start, *head,
                                    std::min(files::kMaxCopyBytes, files::kMaxCopiesBytes - copied), copied);
      if (!bytes.empty() && !is_vdso) {
        limits.push_back(
            fmt::format("{}: the file is gone or has changed since it was loaded: exported names only", module.path));
      }
      if (bytes.empty() && module.build_id.empty()) {
        limits.push_back(fmt::format(
            "{}: the file is gone or has changed since it was loaded: its frames have no names", module.path));
      }
      // Without bytes, the symbolizer opens the file at the path. If the module has a build-id, that is safe: the
      // symbolizer rejects another file, and it may find the mapped file elsewhere.
      if (!bytes.empty() || module.build_id.empty()) {
        module.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
      }
    }
    modules.push_back(std::move(module));
  }
  return modules;
}

void mark_program(std::vector<symbols::Module>& modules, const std::string& exe) {
  const std::string path = without_deleted(exe);
  for (symbols::Module& module : modules) module.is_program = module.path == path;
}

abi::Libc find_libc(const std::vector<symbols::Module>& modules, const std::string& exe) {
  const auto of = [](const symbols::Module& module) {
    if (module.bytes) return libc::read_libc(*module.bytes);
    const std::string& place = module.file.empty() ? module.path : module.file;
    const auto head = read_file_head(module.owner, place, module.mapped);
    return head && head->build_id == module.build_id ? libc::read_libc_file(place) : abi::Libc{};
  };
  const auto shared = std::ranges::find_if(modules, libc::is_libc_name, &symbols::Module::path);
  if (shared != modules.end()) {
    abi::Libc found = of(*shared);
    const auto threads = std::ranges::find_if(modules, libc::is_libpthread_name, &symbols::Module::path);
    if (found.condition == abi::ConditionKind::kUnknown && threads != modules.end())
      found.condition = of(*threads).condition;
    return found;
  }
  const auto program = std::ranges::find(modules, exe, &symbols::Module::path);
  return program == modules.end() ? abi::Libc{} : of(*program);
}

std::string libc_limit(const abi::Libc& libc) {
  if (!libc.version.is_known() || abi::Mutex::kVersions.have(libc.version)) return "";
  return fmt::format("glibc {}.{} is not known to this build: forksight does not say who holds a lock",
                     libc.version.major, libc.version.minor);
}

}  // namespace forksight::image
