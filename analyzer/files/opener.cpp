#include "files/opener.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iterator>
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

namespace {

// A message consists of parts. In front of each part is its size.
using PartSize = std::uint32_t;

void add_part(std::string& message, std::initializer_list<std::string_view> pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  const auto part_size = static_cast<PartSize>(size);
  message.append(reinterpret_cast<const char*>(&part_size), sizeof part_size);
  for (const std::string_view piece : pieces) message += piece;
}

// Removes the next part from a message. nullopt: the message does not begin with a part.
std::optional<std::string_view> take_part(std::string_view& message) {
  PartSize size = 0;
  if (message.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, message.data(), sizeof size);
  message.remove_prefix(sizeof size);
  if (size > message.size()) return std::nullopt;
  const std::string_view part = message.substr(0, size);
  message.remove_prefix(size);
  return part;
}

struct ReplyHead {
  std::int32_t error;
  std::uint32_t has_file;
};
static_assert(sizeof(PartSize) + sizeof(ReplyHead) <= kMaxReplyBytes - kMaxReplyText);

constexpr std::size_t kMostFiles = 253;  // SCM_MAX_FD of the kernel's include/net/scm.h

}  // namespace

void add_request(std::string& message, std::string_view request) { add_part(message, {request}); }

std::vector<Request> decode_requests(std::string_view message) {
  std::vector<Request> requests;
  while (!message.empty()) {
    const auto part = take_part(message);
    auto request = part ? decode_request(*part) : std::nullopt;
    if (!request) return {};
    requests.push_back(std::move(*request));
  }
  return requests;
}

bool ReplyMessage::has_room_for(const Reply& reply) const {
  const std::size_t size = sizeof(PartSize) + sizeof(ReplyHead) + reply.bytes.size();
  return bytes_.size() + size <= kMaxReplyBytes && files_.size() < kMostFiles;
}

void ReplyMessage::add(Reply reply) {
  const ReplyHead head{reply.error, reply.file ? 1U : 0U};
  add_part(bytes_, {{reinterpret_cast<const char*>(&head), sizeof head}, reply.bytes});
  if (reply.file) files_.push_back(std::move(reply.file));
}

std::vector<int> ReplyMessage::descriptors() const {
  std::vector<int> all;
  for (const Descriptor& file : files_) all.push_back(file.get());
  return all;
}

std::vector<Reply> decode_replies(std::string_view message, std::vector<Descriptor> files, std::size_t most) {
  std::vector<Reply> replies;
  std::size_t used = 0;
  while (replies.size() < most) {
    const auto part = take_part(message);
    ReplyHead head{};
    if (!part || part->size() < sizeof head) break;
    std::memcpy(&head, part->data(), sizeof head);
    Reply& reply = replies.emplace_back();
    reply.error = head.error;
    reply.bytes = part->substr(sizeof head);
    if (head.has_file == 0) continue;
    if (used < files.size()) {
      reply.file = std::move(files[used++]);
    } else if (reply.error == 0) {
      reply.error = EMFILE;
    }
  }
  return replies;
}

std::string_view receive_message(int socket, std::span<char> room, std::vector<Descriptor>& files) {
  iovec part{room.data(), room.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> control{};
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
  if (extra != nullptr && extra->cmsg_type == SCM_RIGHTS) {
    const std::size_t count = (extra->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::array<int, kMostFiles> descriptors{};
    std::memcpy(descriptors.data(), CMSG_DATA(extra), count * sizeof(int));
    for (const int fd : std::span(descriptors).first(count)) files.emplace_back(fd);
  }
  return {room.data(), static_cast<std::size_t>(got)};
}

bool send_message(int socket, std::string_view bytes, std::span<const int> descriptors) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const extra = CMSG_FIRSTHDR(&message);
    extra->cmsg_level = SOL_SOCKET;
    extra->cmsg_type = SCM_RIGHTS;
    extra->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(extra), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

std::vector<Reply> ask_opener(std::span<const Request> requests) {
  // A message with more than kManyBytes has a single request. The limits keep the message below the size of the
  // socket's buffer.
  constexpr std::size_t kManyBytes = std::size_t{32} << 10U;
  constexpr std::size_t kMany = 128;
  static std::array<char, kMaxReplyBytes> room;  // g_mutex protects it
  std::vector<Reply> replies;
  const std::scoped_lock lock(g_mutex);
  while (replies.size() < requests.size()) {
    std::string message;
    std::size_t sent = 0;
    for (const Request& request : requests.subspan(replies.size())) {
      const std::string bytes = encode_request(request);
      const bool is_too_long = bytes.size() > kMaxRequestBytes;
      if (sent > 0 && (is_too_long || sent == kMany || message.size() + bytes.size() > kManyBytes)) break;
      if (is_too_long) {
        replies.emplace_back().error = ENAMETOOLONG;
        break;
      }
      add_request(message, bytes);
      ++sent;
    }
    if (sent == 0) continue;
    if (!send_message(g_opener, message, {})) end_without_opener();
    std::vector<Descriptor> files;
    const std::string_view answer = receive_message(g_opener, room, files);
    std::vector<Reply> received = decode_replies(answer, std::move(files), sent);
    if (received.empty()) end_without_opener();
    std::ranges::move(received, std::back_inserter(replies));
  }
  return replies;
}

Reply ask_opener(const Request& request) { return std::move(ask_opener(std::span(&request, 1)).front()); }

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
  if (opened != nullptr) (void)reply.file.release();  // closedir() closes the descriptor
  return opened;
}

}  // namespace forksight::files
