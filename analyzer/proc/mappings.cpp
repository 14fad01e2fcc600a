#include "proc/mappings.hpp"

#include <dirent.h>
#include <elf.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "files/dead_places.hpp"
#include "libc/libc_file.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"

namespace forksight::proc {
namespace {

constexpr std::size_t kMaxMaps = 16U << 20U;
constexpr std::string_view kDeleted = " (deleted)";

template <class Visit>
void for_each_mapping(std::string_view text, const Visit& visit) {
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) break;  // the last line was cut
    visit(text.substr(start, end - start));
    start = end + 1;
  }
}

// True for an executable at a fixed address: it is mapped at the addresses in its headers.
bool is_at_fixed_address(const ProcessMemory& memory, std::uint64_t start) {
  Elf64_Ehdr header;
  return memory.read(start, std::as_writable_bytes(std::span(&header, 1))) &&
         std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_EXEC;
}

// Returns the folder of the mapped file; "" if it cannot be found. If the process has its own mount namespace, the
// folder is searched below the root of the process. Then the folder must be in the file system of the mapped file.
std::string folder_of(std::int32_t tid, const SharedPlace& place) {
  const std::string folder = place.path.substr(0, place.path.rfind('/'));
  if (read_link("/proc/self/ns/mnt") == read_link(proc_path(tid, "ns/mnt"))) return folder;
  const std::string inside = proc_path(tid, "root") + folder;
  struct stat status {};
  if (files::stat_living(inside, status) != 0) return {};
  return fmt::format("{:02x}:{:02x}", major(status.st_dev), minor(status.st_dev)) == place.device ? inside
                                                                                                  : std::string();
}

// Returns the mappings of libc and of libpthread; null for a library that is not mapped.
std::pair<const Mapping*, const Mapping*> find_libc_mappings(const std::vector<Mapping>& mappings) {
  const auto find_file = [&](bool (*has_the_name)(std::string_view)) -> const Mapping* {
    const auto found = std::ranges::find_if(mappings, [&](const Mapping& mapping) {
      const std::string_view path = mapping.path;
      return has_the_name(path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path);
    });
    return found == mappings.end() ? nullptr : &*found;
  };
  return {find_file(libc::is_libc_name), find_file(libc::is_libpthread_name)};
}

abi::Libc read_mapped_libc(std::int32_t tid, const Mapping& mapping) {
  // The path may now lead to another file, or this process may see another file at the path. So the inode is compared.
  for (const std::string& place : {proc_path(tid, "root") + mapping.path,
                                   proc_path(tid, fmt::format("map_files/{:x}-{:x}", mapping.start, mapping.end))}) {
    struct stat status {};
    if (files::stat_living(place, status) == 0 && status.st_ino == mapping.inode) return libc::read_libc_file(place);
  }
  return {};
}

abi::Libc parse_libc(std::int32_t tid, const std::vector<Mapping>& mappings) {
  const auto [shared, threads] = find_libc_mappings(mappings);
  if (shared == nullptr) return libc::read_libc_file(proc_path(tid, "exe"));
  abi::Libc found = read_mapped_libc(tid, *shared);
  if (found.condition == abi::ConditionKind::kUnknown && threads != nullptr)
    found.condition = read_mapped_libc(tid, *threads).condition;
  return found;
}

std::string name_of(const Mapping* mapping) {
  return mapping == nullptr ? "" : fmt::format("{} {} {}\n", mapping->device, mapping->inode, mapping->path);
}

// Identifies the files that contain a process's libc: threads with the same files have the same libc. A static program
// contains its libc, so its own file counts.
std::string name_files(const std::vector<Mapping>& mappings) {
  const auto [shared, threads] = find_libc_mappings(mappings);
  if (shared != nullptr) return name_of(shared) + name_of(threads);
  const auto first = std::ranges::find_if(mappings, [](const Mapping& mapping) { return mapping.inode != 0; });
  return first == mappings.end() ? "" : name_of(&*first);
}

// An attempt may fail because the other process has ended before its file was read, or because the parser failed for a
// moment. Then another attempt may succeed. But if the file system does not answer, each attempt takes ten seconds.
constexpr int kMostAttempts = 3;

struct Asked {
  abi::Libc answer;
  int attempts = 0;
};

ParseLibc g_parser;
std::map<std::string, Asked> g_asked;  // indexed by name_files()

}  // namespace

void set_libc_parser(ParseLibc parser) { g_parser = std::move(parser); }

std::vector<Mapping> read_mappings(std::int32_t tid) {
  std::vector<Mapping> mappings;
  for_each_mapping(read_file(proc_path(tid, "maps"), kMaxMaps).text, [&](std::string_view line) {
    if (auto mapping = parse_mapping(line)) mappings.push_back(std::move(*mapping));
  });
  return mappings;
}

const Mapping* find_mapping(const std::vector<Mapping>& mappings, std::uint64_t address) {
  const auto after =
      std::upper_bound(mappings.begin(), mappings.end(), address,
                       [](std::uint64_t wanted, const Mapping& mapping) { return wanted < mapping.start; });
  if (after == mappings.begin()) return nullptr;
  const Mapping& mapping = *std::prev(after);
  return address < mapping.end ? &mapping : nullptr;
}

WordModule find_module(const ProcessMemory& memory, const std::vector<Mapping>& mappings, std::uint64_t address) {
  const Mapping* at = find_mapping(mappings, address);
  if (at == nullptr) return {};
  // The zeroed part of a module's data (.bss) does not come from the file. This part is an anonymous mapping directly
  // after the mapping of the file.
  if (at->path.empty() && at != mappings.data() && std::prev(at)->end == at->start && std::prev(at)->writable)
    at = std::prev(at);
  if (at->inode == 0 || !at->path.starts_with('/') || at->path.ends_with(kDeleted) || at->shared) return {};
  for (const Mapping* first = at;; --first) {
    const bool is_head = first->path == at->path && first->offset == 0;
    if (is_head) return {at->path, is_at_fixed_address(memory, first->start) ? 0 : first->start};
    if (first == mappings.data() || (first->path != at->path && !first->path.empty())) return {};
  }
}

std::optional<SharedPlace> find_shared_place(const std::vector<Mapping>& mappings, std::uint64_t address) {
  const Mapping* const mapping = find_mapping(mappings, address);
  if (mapping == nullptr || !mapping->shared || mapping->inode == 0) return std::nullopt;
  return SharedPlace{mapping->device, mapping->inode, mapping->offset + (address - mapping->start), mapping->path};
}

bool is_closed_to_others(std::int32_t tid, const SharedPlace& place) {
  if (place.path == "/dev/zero (deleted)") return true;  // MAP_ANONYMOUS
  // Other processes may find System V memory by its key, although its path ends with "(deleted)". Other processes may
  // also have a descriptor of a memfd.
  if (!place.path.ends_with(kDeleted) || place.path.starts_with("/SYSV") || place.path.starts_with("/memfd:"))
    return false;
  // sem_open() maps a file under a temporary name, links it to the final name, and removes the temporary name. So the
  // file may have another name in this folder.
  const std::string folder = folder_of(tid, place);
  if (folder.empty() || files::is_dead_path(folder)) return false;
  DIR* const directory = ::opendir(folder.c_str());
  if (directory == nullptr) return false;
  bool has_name = false;
  while (const dirent* entry = ::readdir(directory)) has_name = has_name || entry->d_ino == place.inode;
  ::closedir(directory);
  return !has_name;
}

SharedMemory SharedMemory::read(const std::set<std::int32_t>& must_read) {
  SharedMemory memory;
  for (const std::int32_t pid : list_numbers("/proc").numbers) {
    const ReadText maps = read_file(proc_path(find_living_thread(pid), "maps"), kMaxMaps);
    const bool is_refused = !maps && maps.outcome == ReadOutcome::kRefused;
    if (is_refused && must_read.contains(pid) && !has_ended(pid)) memory.refused_ = true;
    for_each_mapping(maps.text, [&](std::string_view line) {
      auto mapping = parse_mapping(line);
      if (mapping && mapping->shared && mapping->inode != 0) memory.parts_.push_back({pid, std::move(*mapping)});
    });
  }
  return memory;
}

std::optional<std::vector<std::int32_t>> SharedMemory::mappers(const SharedPlace& place) const {
  if (refused_) return std::nullopt;
  std::vector<std::int32_t> pids;
  for (const Part& part : parts_) {
    const Mapping& mapping = part.mapping;
    const bool is_it = mapping.inode == place.inode && mapping.device == place.device &&
                       mapping.offset <= place.offset && place.offset - mapping.offset < mapping.end - mapping.start;
    if (is_it && (pids.empty() || pids.back() != part.pid)) pids.push_back(part.pid);
  }
  return pids;
}

abi::Libc libc_of(std::int32_t tid, const std::vector<Mapping>& mappings) {
  if (!g_parser) return parse_libc(tid, mappings);
  const std::string files = name_files(mappings);
  if (files.empty()) return {};
  Asked& asked = g_asked[files];
  if (!asked.answer.version.is_known() && asked.attempts < kMostAttempts) {
    ++asked.attempts;
    asked.answer = g_parser(tid);
  }
  return asked.answer;
}

}  // namespace forksight::proc
