#include "command/queue_find.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

namespace forksight {
namespace {

namespace fs = std::filesystem;

ipc::error failure(ipc::errc code, std::string text) { return {code, 0, 0, std::move(text)}; }

ipc::result<ipc::snapshot> look_behind(const fs::path& link) {
  const int fd = open(link.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failure(ipc::errc::not_found, fmt::format("{}: {}", link.string(), std::strerror(errno)));
  auto seen = ipc::inspect(fd);
  close(fd);
  return seen;
}

ipc::result<std::vector<ipc::snapshot>> queues_of(const std::string& pid) {
  std::error_code refused;
  std::vector<fs::path> links;
  for (const auto& entry : fs::directory_iterator("/proc/" + pid + "/fd", refused)) links.push_back(entry.path());
  if (refused) {
    return failure(
        ipc::errc::not_found,
        fmt::format("{}: its descriptors cannot be read: {}", pid,
                    refused == std::errc::no_such_file_or_directory ? "there is no such process" : refused.message()));
  }
  std::ranges::sort(links);
  std::vector<ipc::snapshot> found;
  std::set<std::string> ids;
  std::string why;
  for (const fs::path& link : links) {
    const fs::path target = fs::read_symlink(link, refused);
    if (refused || !ipc::is_queue_file(target.string())) continue;
    auto seen = look_behind(link);
    if (!seen) {
      why = seen.error().text;
    } else if (ids.insert(seen->id).second) {
      found.push_back(std::move(seen).value());
    }
  }
  if (!found.empty()) return found;
  return failure(ipc::errc::not_found,
                 why.empty() ? fmt::format("{}: has no queue open", pid) : fmt::format("{}: {}", pid, why));
}

}  // namespace

ipc::result<std::vector<ipc::snapshot>> find_queues(const std::string& what) {
  if (!what.empty() && what.find_first_not_of("0123456789") == std::string::npos) return queues_of(what);
  auto seen = what.starts_with("/proc/") ? look_behind(what) : ipc::inspect(what.starts_with('/') ? what : "/" + what);
  if (!seen) return seen.error();
  return std::vector<ipc::snapshot>{std::move(seen).value()};
}

}  // namespace forksight
