#include "files/opener.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

namespace forksight::files {
namespace {

int g_opener = -1;
std::mutex g_mutex;  // held from a request until its reply

// The fixed part of a request. The groups of the owner and the path follow.
struct Head {
  std::uint32_t wish;
  std::int32_t number;
  std::uint32_t has_owner;
  std::uint32_t has_mapped;
  std::uint32_t uid;
  std::uint32_t gid;
  std::uint32_t major;
  std::uint32_t minor;
  std::uint64_t inode;
  std::uint32_t groups;
  std::uint32_t path_bytes;
};

// True if the mount option hidepid hides the processes of other users from this process. The test is whether process 1
// is hidden, because each pid namespace has a process 1. A process with CAP_SYS_PTRACE sees all processes.
bool are_processes_hidden() {
  static const bool kAreHidden = [] {
    struct stat status {};
    return ::stat("/proc/self", &status) == 0 && ::stat("/proc/1", &status) != 0;
  }();
  return kAreHidden;
}

[[noreturn]] void end_without_opener() {
  constexpr std::string_view kText =
      "forksight: error: the process that opens files for forksight has ended, so the report would be incomplete\n";
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(3);
}

}  // namespace

void use_opener(int socket) { g_opener = socket; }
bool has_opener() { return g_opener >= 0; }
bool may_help(int error) {
  if (!has_opener()) return false;
  return error == EACCES || error == EPERM || (error == ENOENT && are_processes_hidden());
}

std::string encode_request(const Request& request) {
  const Owner owner = request.owner.value_or(Owner{});
  const MappedFile mapped = request.mapped.value_or(MappedFile{});
  const Head head{static_cast<std::uint32_t>(request.wish),
                  request.number,
                  request.owner ? 1U : 0U,
                  request.mapped ? 1U : 0U,
                  owner.uid,
                  owner.gid,
                  mapped.major,
                  mapped.minor,
                  mapped.inode,
                  static_cast<std::uint32_t>(owner.groups.size()),
                  static_cast<std::uint32_t>(request.path.size())};
  std::string bytes(sizeof head + owner.groups.size() * sizeof(gid_t) + request.path.size(), '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  char* const rest = bytes.data() + sizeof head;
  if (!owner.groups.empty()) std::memcpy(rest, owner.groups.data(), owner.groups.size() * sizeof(gid_t));
  std::ranges::copy(request.path, rest + owner.groups.size() * sizeof(gid_t));
  return bytes;
}

std::optional<Request> decode_request(std::string_view bytes) {
  Head head{};
  if (bytes.size() < sizeof head || bytes.size() > kMaxRequestBytes) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  if (head.wish > static_cast<std::uint32_t>(kLastWish)) return std::nullopt;
  if (head.groups > bytes.size() / sizeof(gid_t)) return std::nullopt;
  const std::size_t group_bytes = head.groups * sizeof(gid_t);
  if (bytes.size() - group_bytes != head.path_bytes) return std::nullopt;
  Request request;
  request.wish = static_cast<Wish>(head.wish);
  request.number = head.number;
  if (head.has_mapped != 0) request.mapped = MappedFile{head.major, head.minor, head.inode};
  if (head.has_owner != 0) {
    Owner owner{head.uid, head.gid, std::vector<gid_t>(head.groups)};
    if (group_bytes != 0) std::memcpy(owner.groups.data(), bytes.data(), group_bytes);
    request.owner = std::move(owner);
  }
  request.path = bytes.substr(group_bytes);
  // The kernel would cut a path at a NUL, so that the checked path would not be the opened one.
  if (request.path.find('\0') != std::string::npos) return std::nullopt;
  return request;
}

std::string_view receive_message(int socket, std::span<char> room, Descriptor& file) {
  iovec part{room.data(), room.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return {};
  const cmsghdr* const extra = CMSG_FIRSTHDR(&message);
  if (extra != nullptr && extra->cmsg_type == SCM_RIGHTS && extra->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(extra), sizeof fd);
    file = Descriptor(fd);
  }
  return {room.data(), static_cast<std::size_t>(got)};
}

bool send_message(int socket, std::string_view bytes, int fd) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const extra = CMSG_FIRSTHDR(&message);
    extra->cmsg_level = SOL_SOCKET;
    extra->cmsg_type = SCM_RIGHTS;
    extra->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(extra), &fd, sizeof fd);
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

Reply ask_opener(const Request& request) {
  Reply reply;
  const std::string bytes = encode_request(request);
  if (bytes.size() > kMaxRequestBytes) {
    reply.error = ENAMETOOLONG;
    return reply;
  }
  const std::scoped_lock lock(g_mutex);
  if (!send_message(g_opener, bytes, -1)) end_without_opener();
  static std::array<char, kMaxReplyBytes> room;  // g_mutex protects it
  const std::string_view answer = receive_message(g_opener, room, reply.file);
  if (answer.size() < sizeof reply.error) end_without_opener();
  std::memcpy(&reply.error, answer.data(), sizeof reply.error);
  reply.bytes = answer.substr(sizeof reply.error);
  // A descriptor is missing if this process may open no more descriptors.
  const bool wants_file = request.wish == Wish::kFile || request.wish == Wish::kFolder ||
                          request.wish == Wish::kEntry || request.wish == Wish::kSocket;
  if (reply.error == 0 && wants_file && !reply.file) reply.error = EMFILE;
  return reply;
}

Reply ask_opener(Wish wish, const std::string& path, std::int32_t number) {
  Request request;
  request.wish = wish;
  request.path = path;
  request.number = number;
  return ask_opener(request);
}

DIR* open_folder(const std::string& folder, Wish wish) {
  DIR* const directory = ::opendir(folder.c_str());
  if (directory != nullptr || !may_help(errno)) return directory;
  Reply reply = ask_opener(wish, folder);
  errno = reply.error;
  DIR* const opened = reply.file ? ::fdopendir(reply.file.get()) : nullptr;
  if (opened != nullptr) (void)reply.file.release();  // closedir() closes it
  return opened;
}

}  // namespace forksight::files
