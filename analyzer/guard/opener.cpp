#include "guard/opener.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/dead_places.hpp"
#include "files/named_paths.hpp"
#include "forksight/ipc/snapshot.hpp"
#include "proc/proc_fs.hpp"
#include "proc/sockets.hpp"

namespace forksight::guard {
namespace {

using files::Reply;
using files::Request;
using files::Wish;

Reply refuse(int error = EACCES) {
  Reply reply;
  reply.error = error;
  return reply;
}

Reply give(files::Descriptor file) {
  Reply reply;
  if (!file) return refuse(errno);
  reply.file = std::move(file);
  return reply;
}

// Removes a leading number and the "/" after it from a path. False if the path does not begin like that.
bool take_number(std::string_view& path) {
  const std::size_t end = path.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos || path[end] != '/') return false;
  path.remove_prefix(end + 1);
  return true;
}

bool take(std::string_view& path, std::string_view start) {
  if (!path.starts_with(start)) return false;
  path.remove_prefix(start.size());
  return true;
}

// Returns the part of a path after /proc/PID/ or /proc/PID/task/TID/; "" for every other path.
std::string_view entry_of(std::string_view path) {
  if (!take(path, "/proc/") || !take_number(path)) return {};
  std::string_view inner = path;
  return take(inner, "task/") && take_number(inner) ? inner : path;
}

bool is_word(std::string_view word) {
  return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string_view::npos;
}

// True for entries like "mem", "fdinfo/7" and "net/tcp".
bool is_file_entry(std::string_view entry) {
  for (const std::string_view folder : {"fdinfo/", "net/"}) {
    if (take(entry, folder)) return is_word(entry);
  }
  return is_word(entry);
}

bool is_descriptor_entry(std::string_view entry) { return take(entry, "fd/") && is_word(entry); }

// Entries that lead to a file which the process has opened or mapped.
bool is_file_link(std::string_view entry) {
  if (entry == "exe" || is_descriptor_entry(entry)) return true;
  return take(entry, "map_files/") && !entry.empty() && entry.find('/') == std::string_view::npos;
}

bool is_link_entry(std::string_view entry) {
  if (entry == "cwd" || entry == "root" || is_file_link(entry)) return true;
  return take(entry, "ns/") && is_word(entry);
}

Reply give_entry(const std::string& path, bool examines_processes) {
  const std::string_view entry = entry_of(path);
  if (!is_file_entry(entry)) return refuse();
  // Work that examines no process only finds out which files a process has mapped or opened.
  if (!examines_processes && entry != "maps" && entry != "fd") return refuse();
  // O_NOFOLLOW refuses the links cwd, exe and root.
  files::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!file) return refuse(errno);
  struct statfs status {};
  if (::fstatfs(file.get(), &status) != 0 || status.f_type != static_cast<long>(PROC_SUPER_MAGIC)) return refuse();
  return give(std::move(file));
}

Reply give_link(const std::string& path) {
  if (!is_link_entry(entry_of(path))) return refuse();
  const auto text = proc::read_link(path);
  if (!text) return refuse(errno);
  Reply reply;
  reply.bytes = *text;
  return reply;
}

// Adds a line to the reply. False if there is no room for it.
bool add_line(Reply& reply, std::string_view line) {
  if (reply.bytes.size() + line.size() + 1 + sizeof reply.error > files::kMaxReplyBytes) return false;
  reply.bytes += line;
  reply.bytes += '\0';
  return true;
}

Reply give_links(const std::string& folder, std::int32_t first) {
  if (entry_of(folder) != "fd") return refuse();
  const proc::ListedNumbers listed = proc::list_numbers(folder);
  if (listed.outcome != proc::ReadOutcome::kOk) {
    return refuse(listed.outcome == proc::ReadOutcome::kRefused ? EACCES : ENOENT);
  }
  Reply reply;
  for (auto fd = std::ranges::lower_bound(listed.numbers, first); fd != listed.numbers.end(); ++fd) {
    const auto text = proc::read_link(fmt::format("{}/{}", folder, *fd));
    if (!text) continue;
    if (!add_line(reply, fmt::format("{} {}", *fd, *text))) break;
  }
  return reply;
}

Reply give_calls(const std::string& folder, std::int32_t first) {
  if (entry_of(folder) != "task") return refuse();
  const proc::ListedNumbers listed = proc::list_numbers(folder);
  if (listed.outcome != proc::ReadOutcome::kOk) return refuse(ENOENT);
  Reply reply;
  for (auto tid = std::ranges::lower_bound(listed.numbers, first); tid != listed.numbers.end(); ++tid) {
    const proc::ReadText call = proc::read_file(fmt::format("{}/{}/syscall", folder, *tid));
    const int outcome = call ? 0 : call.outcome == proc::ReadOutcome::kGone ? 1 : 2;
    if (!add_line(reply, fmt::format("{} {} {}", *tid, outcome, call.text))) break;
  }
  return reply;
}

Reply give_status(const std::string& path) {
  struct stat status {};
  if (files::stat_living(path, status) != 0) return refuse(errno);
  Reply reply;
  reply.bytes.assign(reinterpret_cast<const char*>(&status), sizeof status);
  return reply;
}

Reply give_folder(const std::string& path) {
  if (!files::is_named_path(path)) return refuse();
  if (files::is_dead_path(path)) return refuse(ETIMEDOUT);
  return give(files::Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
}

// True for programs, libraries and debug files. A core is the memory of a process, so it may contain secrets.
bool is_code(int fd) {
  Elf64_Ehdr header{};
  static_assert(offsetof(Elf64_Ehdr, e_type) == offsetof(Elf32_Ehdr, e_type));
  if (files::read_at(fd, 0, std::as_writable_bytes(std::span(&header, 1))) < sizeof(Elf32_Ehdr)) return false;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type != ET_CORE;
}

Reply give_file(const Request& request) {
  files::Descriptor file = !request.owner   ? files::open_regular(request.path)
                           : request.mapped ? files::open_mapped(*request.owner, request.path, request.mapped)
                                            : files::open_for(*request.owner, request.path);
  if (!file) return refuse(errno);
  const bool may_read = files::is_named_path(request.path) || is_code(file.get()) ||
                        ipc::is_queue_file(proc::read_link(fmt::format("/proc/self/fd/{}", file.get())).value_or(""));
  return may_read ? give(std::move(file)) : refuse();
}

}  // namespace

Reply grant(const Request& request, bool examines_processes) {
  switch (request.wish) {
    case Wish::kFile: return give_file(request);
    case Wish::kFolder: return give_folder(request.path);
    case Wish::kStatus: return give_status(request.path);
    case Wish::kEntry: return give_entry(request.path, examines_processes);
    case Wish::kLink: return give_link(request.path);
    case Wish::kLinks: return give_links(request.path, request.number);
    case Wish::kCalls: return examines_processes ? give_calls(request.path, request.number) : refuse();
    case Wish::kSocket: return give(files::Descriptor(proc::open_diagnosis_of(request.number)));
  }
  return refuse();
}

void serve_requests(int socket, bool examines_processes) {
  std::vector<char> room(files::kMaxRequestBytes);
  for (;;) {
    files::Descriptor unwanted;
    const std::string_view bytes = files::receive_message(socket, room, unwanted);
    if (bytes.empty()) break;
    const auto request = files::decode_request(bytes);
    const Reply reply = request ? grant(*request, examines_processes) : refuse(EINVAL);
    std::string answer(sizeof reply.error, '\0');
    std::memcpy(answer.data(), &reply.error, sizeof reply.error);
    answer += reply.bytes;
    if (!files::send_message(socket, answer, reply.file.get())) break;
  }
  ::_exit(0);
}

}  // namespace forksight::guard
