#include "proc/blocked_call.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "proc/mappings.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::proc {
namespace {

enum class Names { kNothing, kPath, kPathAt, kDescriptor };

// Returns how the call names its file.
Names names_of(std::int64_t number) {
  switch (number) {
    case SYS_open:
    case SYS_stat:
    case SYS_lstat:
    case SYS_access:
    case SYS_readlink:
    case SYS_statfs: return Names::kPath;
    case SYS_openat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_faccessat:
    case SYS_faccessat2:
    case SYS_readlinkat: return Names::kPathAt;
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_fstat:
    case SYS_fstatfs:
    case SYS_getdents64:
    case SYS_lseek: return Names::kDescriptor;
    default: return Names::kNothing;
  }
}

std::string link_of(std::int32_t pid, std::int32_t fd) {
  return read_link(proc_path(pid, fmt::format("fd/{}", fd))).value_or("");
}

bool is_of_mem(std::string_view path) { return path.starts_with("/proc/") && path.ends_with("/mem"); }

// True for a file that may lie on any file system. False for pipes, sockets and devices.
bool is_file(std::string_view path) {
  if (is_of_mem(path)) return true;
  return path.starts_with('/') && !path.starts_with("/dev/") && !path.starts_with("/proc/") &&
         !path.starts_with("/sys/");
}

std::string named_path(const Syscall& call, std::int32_t pid, std::int32_t tid) {
  const bool is_at = names_of(call.number) == Names::kPathAt;
  std::string name = ProcessMemory(tid).read_c_string(call.args[is_at ? 1 : 0]).value_or("");
  if (name.starts_with('/')) return name;
  const std::int32_t folder = is_at ? as_int(call.args[0]) : AT_FDCWD;
  std::string base = folder == AT_FDCWD ? read_link(proc_path(pid, "cwd")).value_or("") : link_of(pid, folder);
  if (name.empty()) return base;  // AT_EMPTY_PATH
  return base == "/" ? base + name : base + "/" + name;
}

// Returns the N of "/proc/N/..."; `otherwise` if the path does not have this form.
std::int32_t process_of_path(std::string_view path, std::int32_t otherwise) {
  constexpr std::string_view kProc = "/proc/";
  std::int32_t number = 0;
  if (!path.starts_with(kProc)) return otherwise;
  const auto [end, error] = std::from_chars(path.data() + kProc.size(), path.data() + path.size(), number);
  return error == std::errc() && number > 0 ? number : otherwise;
}

files::DeadPlace place_of_path(const std::string& path, std::int32_t pid) {
  constexpr std::size_t kMaxMounts = 16U << 20U;
  const std::string mounts = read_file(proc_path(process_of_path(path, pid), "mountinfo"), kMaxMounts).text;
  return find_mount(mounts, files::resolve_proc_path(path));
}

files::DeadPlace place_of_mapping(const Mapping& mapping, std::int32_t pid) {
  files::DeadPlace place;
  if (mapping.path.starts_with('/')) place = place_of_path(proc_path(pid, "root") + mapping.path, pid);
  place.device = mapping.device;  // the file's device; on overlayfs and btrfs, the mount has another device
  return place;
}

// Used for a call that reads /proc/PID/mem (`path`). Returns the place of the file from which the page at `address`
// comes. Returns nothing if the page comes from no file.
std::vector<files::DeadPlace> places_of_memory(const std::string& path, std::uint64_t address) {
  const std::int32_t pid = process_of_path(path, 0);
  const std::vector<Mapping> mappings = read_mappings(pid);
  const auto found = std::ranges::find_if(
      mappings, [&](const Mapping& one) { return one.inode != 0 && one.start <= address && address < one.end; });
  if (found == mappings.end()) return {};
  return {place_of_mapping(*found, pid)};
}

// Returns the candidates for a thread that waits for a page of a mapped file. forksight cannot see which file that is.
// The candidates are the mapped files on all file systems from which forksight itself has mapped nothing.
std::vector<files::DeadPlace> places_of_page(std::int32_t pid) {
  std::set<std::string> known;
  for (const Mapping& mapping : read_mappings(::getpid())) known.insert(mapping.device);
  std::vector<files::DeadPlace> places;
  for (const Mapping& mapping : read_mappings(pid)) {
    if (mapping.inode == 0 || !known.insert(mapping.device).second) continue;
    places.push_back(place_of_mapping(mapping, pid));
  }
  return places;
}

std::string_view next_field(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

// mountinfo writes a blank, a tab, a new line and a backslash as "\040" and the like.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '\\' && i + 3 < text.size() && std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      plain.push_back(static_cast<char>(code));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

// Converts "0:53" to "00:35", the form that /proc/PID/maps uses.
std::string device_of(std::string_view text) {
  unsigned major = 0;
  unsigned minor = 0;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const char* const end = text.data() + text.size();
  std::from_chars(text.data(), text.data() + colon, major);
  if (colon < text.size()) std::from_chars(text.data() + colon + 1, end, minor);
  return fmt::format("{:02x}:{:02x}", major, minor);
}

}  // namespace

files::DeadPlace find_mount(std::string_view mountinfo, std::string_view path) {
  files::DeadPlace best;
  while (!mountinfo.empty()) {
    const std::size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    next_field(line);  // the id of the mount, and that of its parent
    next_field(line);
    const std::string_view device = next_field(line);
    next_field(line);  // the part of the file system that is mounted
    std::string folder = unescape(next_field(line));
    const bool is_prefix =
        path.starts_with(folder) && (folder == "/" || path.size() == folder.size() || path[folder.size()] == '/');
    // Of two mounts at one place the later one covers the earlier one.
    if (is_prefix && !folder.empty() && folder.size() >= best.folder.size())
      best = {std::move(folder), device_of(device)};
  }
  return best;
}

std::optional<BlockedCall> find_blocked_call(std::int32_t pid, std::int32_t tid) {
  bool refused = false;
  const auto thread = sample_thread(pid, tid, refused);
  if (!thread || thread->ended() || thread->call.running) return std::nullopt;
  if (thread->status.state != 'S' && thread->status.state != 'D') return std::nullopt;
  const Syscall& call = thread->call;
  if (call.in_syscall) {
    const Names names = names_of(call.number);
    if (names == Names::kNothing) return std::nullopt;
    if (names == Names::kDescriptor && !is_file(link_of(pid, as_int(call.args[0])))) return std::nullopt;
  }
  return BlockedCall{call, fmt::format("{} {:x} {}", call.number, call.pc, thread->status.voluntary)};
}

std::vector<files::DeadPlace> find_places(const BlockedCall& blocked, std::int32_t pid, std::int32_t tid) {
  std::vector<files::DeadPlace> places;
  if (!blocked.call.in_syscall) {
    places = places_of_page(pid);
  } else if (names_of(blocked.call.number) != Names::kDescriptor) {
    places.push_back(place_of_path(named_path(blocked.call, pid, tid), pid));
  } else if (const std::string path = link_of(pid, as_int(blocked.call.args[0])); is_of_mem(path)) {
    places = places_of_memory(path, blocked.call.args[3]);
  } else {
    places.push_back(place_of_path(path, pid));
  }
  // Leaves out the root file system. forksight itself needs the root file system, and would not run if the root file
  // system did not answer. A long call on the root file system only shows that the disk is slow.
  std::erase_if(places, [](const files::DeadPlace& place) {
    return place.folder == "/" || (place.folder.empty() && place.device.empty());
  });
  return places;
}

}  // namespace forksight::proc
