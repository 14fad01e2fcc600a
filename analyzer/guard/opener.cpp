#include "guard/opener.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/budgets.hpp"
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

// Removes a leading number and the "/" after it from a path. False if the path does not begin with a number and "/".
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

// True for entries that lead to a file that the process has opened or mapped.
bool is_file_link(std::string_view entry) {
  if (entry == "exe" || is_descriptor_entry(entry)) return true;
  return take(entry, "map_files/") && !entry.empty() && entry.find('/') == std::string_view::npos;
}

bool is_link_entry(std::string_view entry) {
  if (entry == "cwd" || entry == "root" || is_file_link(entry)) return true;
  return take(entry, "ns/") && is_word(entry);
}

Reply give_entry(const std::string& path) {
  if (!is_file_entry(entry_of(path))) return refuse();
  // O_NOFOLLOW refuses the links cwd, exe and root.
  files::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!file) return refuse(errno);
  struct statfs status {};
  if (::fstatfs(file.get(), &status) != 0 || status.f_type != static_cast<long>(PROC_SUPER_MAGIC)) return refuse();
  return give(std::move(file));
}

Reply give_link(const std::string& path) {
  if (!is_link_entry(entry_of(path))) return refuse();
  errno = ENAMETOOLONG;  // read_link() sets no errno for a text that is too long
  const auto text = proc::read_link(path);
  if (!text) return refuse(errno);
  Reply reply;
  reply.bytes = *text;
  return reply;
}

// Adds a line to the reply. False if there is no room for the line.
bool add_line(Reply& reply, std::string_view line) {
  if (reply.bytes.size() + line.size() + 1 > files::kMaxReplyText) return false;
  reply.bytes += line;
  reply.bytes += '\0';
  return true;
}

// Lists a folder for the first of several replies, and keeps the list for the other replies. The folder of a process
// with a million descriptors would otherwise be listed some hundred times.
const proc::ListedNumbers& list_once(const std::string& folder, std::int32_t first) {
  static std::string kept_folder;
  static proc::ListedNumbers kept;
  if (first == 0 || folder != kept_folder) {
    kept = proc::list_numbers(folder);
    kept_folder = folder;
  }
  return kept;
}

Reply give_links(const std::string& folder, std::int32_t first) {
  if (entry_of(folder) != "fd") return refuse();
  const proc::ListedNumbers& listed = list_once(folder, first);
  if (listed.outcome != proc::ReadOutcome::kOk) {
    return refuse(listed.outcome == proc::ReadOutcome::kRefused ? EACCES : ENOENT);
  }
  Reply reply;
  const proc::LinkReader reader(folder);
  for (auto fd = std::ranges::lower_bound(listed.numbers, first); fd != listed.numbers.end(); ++fd) {
    bool is_refused = false;
    const auto text = reader.read(*fd, is_refused);
    if (is_refused) return refuse(EACCES);
    if (!text) continue;
    if (!add_line(reply, fmt::format("{} {}", *fd, *text))) return reply;
  }
  add_line(reply, "");
  return reply;
}

Reply give_calls(const std::string& folder, std::int32_t first) {
  if (entry_of(folder) != "task") return refuse();
  const proc::ListedNumbers& listed = list_once(folder, first);
  if (listed.outcome != proc::ReadOutcome::kOk) return refuse(ENOENT);
  Reply reply;
  for (auto tid = std::ranges::lower_bound(listed.numbers, first); tid != listed.numbers.end(); ++tid) {
    const proc::ReadText call = proc::read_file(fmt::format("{}/{}/syscall", folder, *tid));
    const int outcome = call ? 0 : call.outcome == proc::ReadOutcome::kGone ? 1 : 2;
    if (!add_line(reply, fmt::format("{} {} {}", *tid, outcome, call.text))) return reply;
  }
  add_line(reply, "");
  return reply;
}

Reply give_link_status(const std::string& path) {
  if (!is_descriptor_entry(entry_of(path))) return refuse();
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return refuse(errno);
  Reply reply;
  reply.bytes.assign(reinterpret_cast<const char*>(&status), sizeof status);
  return reply;
}

Reply give_status(const std::string& path) {
  struct stat status {};
  if (files::stat_living(path, status) != 0) return refuse(errno);
  Reply reply;
  reply.bytes.assign(reinterpret_cast<const char*>(&status), sizeof status);
  return reply;
}

// Opens a folder. Below the named folder, follows no links: a stranger may have made such a link, and the link may lead
// anywhere.
files::Descriptor open_below(const files::NamedPlace& place) {
  constexpr int kPlace = O_PATH | O_DIRECTORY | O_CLOEXEC;
  files::Descriptor folder(::open(place.named.c_str(), kPlace));
  for (std::size_t at = 0; folder && at < place.rest.size();) {
    const std::size_t end = std::min(place.rest.find('/', at), place.rest.size());
    const std::string name = place.rest.substr(at, end - at);
    at = end + 1;
    if (!name.empty()) folder = files::Descriptor(::openat(folder.get(), name.c_str(), kPlace | O_NOFOLLOW));
  }
  if (!folder) return folder;
  return files::Descriptor(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Reply give_folder(const std::string& path) {
  if (files::is_dead_path(path)) return refuse(ETIMEDOUT);
  int error = EACCES;
  for (const files::NamedPlace& place : files::find_named_places(path)) {
    files::Descriptor folder = open_below(place);
    if (folder) return give(std::move(folder));
    error = errno;
  }
  return refuse(error);
}

// True for programs, libraries and debug files. False for a core, because a core is the memory of a process and may
// contain secrets.
bool is_code(int fd) {
  Elf64_Ehdr header{};
  static_assert(offsetof(Elf64_Ehdr, e_type) == offsetof(Elf32_Ehdr, e_type));
  if (files::read_at(fd, 0, std::as_writable_bytes(std::span(&header, 1))) < sizeof(Elf32_Ehdr)) return false;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type != ET_CORE;
}

Reply give_copy(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return refuse(errno);
  if (static_cast<std::uint64_t>(status.st_size) > files::kMaxFileCopyBytes) return refuse(EFBIG);
  files::Descriptor copy(::memfd_create("forksight-copy", MFD_CLOEXEC));
  if (!copy) return refuse(errno);
  std::vector<std::byte> piece(std::size_t{64} << 10U);
  for (std::uint64_t at = 0; at < static_cast<std::uint64_t>(status.st_size);) {
    const std::size_t got = files::read_at(fd, at, piece);
    if (got == 0) break;
    const ssize_t put = ::pwrite(copy.get(), piece.data(), got, static_cast<off_t>(at));
    if (put <= 0) return refuse(put < 0 ? errno : ENOSPC);
    at += static_cast<std::uint64_t>(put);
  }
  return give(std::move(copy));
}

// True for the file of a queue. Its path alone proves nothing: a process can mount any file at the path of a queue, in
// a mount namespace of its own.
bool is_queue(int fd) {
  return ipc::is_queue_file(proc::read_link(fmt::format("/proc/self/fd/{}", fd)).value_or("")) &&
         ipc::begins_as_queue(fd);
}

Reply give_file(const Request& request) {
  files::Descriptor file = !request.owner   ? files::open_regular(request.path)
                           : request.mapped ? files::open_mapped(*request.owner, request.path, request.mapped)
                                            : files::open_for(*request.owner, request.path);
  if (!file) return refuse(errno);
  if (!files::is_named_path(request.path) && !is_code(file.get()) && !is_queue(file.get())) return refuse();
  return request.number == 1 ? give_copy(file.get()) : give(std::move(file));
}

}  // namespace

namespace {

Reply grant_if_readable(const Request& request) {
  switch (request.wish) {
    case Wish::kFile: return give_file(request);
    case Wish::kFolder: return give_folder(request.path);
    case Wish::kStatus: return give_status(request.path);
    case Wish::kEntry: return give_entry(request.path);
    case Wish::kLink: return give_link(request.path);
    case Wish::kLinks: return give_links(request.path, request.number);
    case Wish::kLinkStatus: return give_link_status(request.path);
    case Wish::kCalls: return give_calls(request.path, request.number);
    case Wish::kSocket: return give(files::Descriptor(proc::open_diagnosis_of(request.number)));
  }
  return refuse();
}

}  // namespace

// If something could not be read, the process that asks must learn of the failure. Otherwise that process would take an
// incomplete list for a complete list.
Reply grant(const Request& request) {
  const std::uint64_t failures = proc::count_failures();
  Reply reply = grant_if_readable(request);
  return proc::count_failures() == failures ? std::move(reply) : refuse(proc::last_failure());
}

bool reads_process(const Request& request) {
  // Work that examines no process needs these entries: `queue inspect PID` reads the descriptors, and find_libc() reads
  // the mappings.
  static constexpr std::array<std::string_view, 5> kOthers = {"fd", "maps", "stat", "status", "task"};
  switch (request.wish) {
    case Wish::kEntry: return std::ranges::find(kOthers, entry_of(request.path)) == kOthers.end();
    case Wish::kCalls:
    case Wish::kSocket: return true;
    case Wish::kFile:
    case Wish::kFolder:
    case Wish::kStatus:
    case Wish::kLink:
    case Wish::kLinks:
    case Wish::kLinkStatus: return false;
  }
  return true;
}

namespace {

// Sends replies to the first of these requests, as many as fit into a message. Returns false if the other end is
// closed.
bool answer(int socket, std::span<const Request> requests, bool examines_processes) {
  const auto reply_to = [&](const Request& request) {
    return examines_processes || !reads_process(request) ? grant(request) : refuse();
  };
  files::ReplyMessage message;
  message.add(reply_to(requests.front()));
  for (const Request& request : requests.subspan(1)) {
    // A reply with many texts takes long to make. If the message has little room left, the reply would not fit.
    constexpr std::size_t kMostOfFull = files::kMaxReplyBytes / 2;
    if (message.bytes().size() > kMostOfFull) break;
    Reply reply = reply_to(request);
    if (!message.has_room_for(reply)) break;
    message.add(std::move(reply));
  }
  if (files::send_message(socket, message.bytes(), message.descriptors())) return true;
  // The kernel limits how many descriptors of a user are in messages that nobody has received. At this limit, only the
  // first request is answered.
  if (errno != ETOOMANYREFS) return false;
  if (requests.size() > 1) return answer(socket, requests.first(1), examines_processes);
  files::ReplyMessage refusal;
  refusal.add(refuse(EMFILE));
  return files::send_message(socket, refusal.bytes(), {});
}

}  // namespace

void serve_requests(int socket, bool examines_processes) {
  // A message with one request may have kMaxRequestBytes, and before them the size of the request.
  std::vector<char> room(files::kMaxRequestBytes + sizeof(std::uint32_t));
  for (;;) {
    std::vector<files::Descriptor> unwanted;
    const std::string_view bytes = files::receive_message(socket, room, unwanted);
    if (bytes.empty()) break;
    const std::vector<Request> requests = files::decode_requests(bytes);
    if (requests.empty()) {
      files::ReplyMessage refusal;
      refusal.add(refuse(EINVAL));
      if (!files::send_message(socket, refusal.bytes(), {})) break;
    } else if (!answer(socket, requests, examines_processes)) {
      break;
    }
  }
  ::_exit(0);
}

}  // namespace forksight::guard
