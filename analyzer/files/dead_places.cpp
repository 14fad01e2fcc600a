#include "files/dead_places.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "files/opener.hpp"

namespace forksight::files {
namespace {

// The list is filled before threads and children are started.
std::vector<DeadPlace>& dead_places() {
  static std::vector<DeadPlace> places;
  return places;
}

std::string read_link(const std::string& path) {
  std::array<char, 4096> buffer;
  const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
  return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : std::string();
}

bool is_below(std::string_view path, std::string_view folder) {
  if (folder.empty() || !path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder == "/" || path[folder.size()] == '/';
}

std::size_t end_of_component(std::string_view path, std::size_t start) {
  return std::min(path.find('/', start), path.size());
}

}  // namespace

std::string resolve_proc_path(std::string_view path) {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return std::string(path);
  std::size_t end = end_of_component(path, kProc.size());
  if (path.substr(end).starts_with("/task/")) end = end_of_component(path, end_of_component(path, end + 1) + 1);
  if (end >= path.size()) return std::string(path);
  const std::size_t entry_end = end_of_component(path, end + 1);
  const std::string_view entry = path.substr(end + 1, entry_end - end - 1);
  if (entry == "root") return std::string(path.substr(entry_end));
  std::size_t link_end = entry_end;
  if (entry == "fd" || entry == "map_files") {
    if (entry_end >= path.size()) return std::string(path);
    link_end = end_of_component(path, entry_end + 1);
  } else if (entry != "cwd" && entry != "exe") {
    return std::string(path);
  }
  const std::string target = read_link(std::string(path.substr(0, link_end)));
  return target.empty() ? std::string(path) : target + std::string(path.substr(link_end));
}

bool add_dead_place(DeadPlace place) {
  std::vector<DeadPlace>& known = dead_places();
  const bool is_new = std::ranges::none_of(
      known, [&](const DeadPlace& one) { return one.folder == place.folder && one.device == place.device; });
  if (is_new) known.push_back(std::move(place));
  return is_new;
}

bool has_dead_places() { return !dead_places().empty(); }

std::vector<std::string> describe_dead_places() {
  std::vector<std::string> sentences;
  for (const DeadPlace& place : dead_places()) {
    const std::string where =
        place.folder.empty() ? fmt::format("on device {}", place.device) : fmt::format("mounted at {}", place.folder);
    sentences.push_back(fmt::format(
        "The file system {} {}. Nothing was read from it, so names, lines and data of its files are missing", where,
        place.is_slow ? "answers too slowly" : "does not answer"));
  }
  return sentences;
}

bool is_dead_device(std::string_view device) {
  return std::ranges::any_of(dead_places(),
                             [&](const DeadPlace& place) { return !device.empty() && place.device == device; });
}

bool is_dead_path(std::string_view path) {
  if (!has_dead_places()) return false;
  const std::string resolved = resolve_proc_path(path);
  return std::ranges::any_of(dead_places(), [&](const DeadPlace& place) { return is_below(resolved, place.folder); });
}

int stat_living(const std::string& path, struct stat& status) {
  if (is_dead_path(path)) {
    errno = ETIMEDOUT;
    return -1;
  }
  const int failed = ::stat(path.c_str(), &status);
  if (failed == 0 || !may_help(errno)) return failed;
  const Reply reply = ask_opener(Wish::kStatus, path);
  errno = reply.error;
  if (reply.bytes.size() != sizeof status) return -1;
  std::memcpy(&status, reply.bytes.data(), sizeof status);
  return 0;
}

}  // namespace forksight::files
