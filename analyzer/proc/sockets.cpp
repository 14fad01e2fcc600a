#include "proc/sockets.hpp"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "files/opener.hpp"
#include "proc/descriptors.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::proc {
namespace {

constexpr std::uint8_t kEstablished = 1;  // TCP_ESTABLISHED, also for UNIX sockets

template <class T>
bool copy_out(std::span<const std::byte> bytes, std::size_t at, T& out) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + at, sizeof(T));
  return true;
}

int open_diagnosis() { return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG); }

}  // namespace

// The kernel reports only the sockets of the namespace in which the diagnosis socket was opened. So a helper thread
// enters the namespace of `tid`, opens the socket there, and ends.
int open_diagnosis_of(std::int32_t tid) {
  const std::string entry = proc_path(tid, "ns/net");
  if (read_link(entry) == read_link("/proc/self/ns/net")) return open_diagnosis();
  if (files::has_opener()) {
    files::Reply reply = files::ask_opener(files::Wish::kSocket, {}, tid);
    errno = reply.error;
    return reply.file.release();
  }
  int fd = -1;
  const auto enter = [&] {
    const int space = ::open(entry.c_str(), O_RDONLY | O_CLOEXEC);
    if (space < 0) return;
    if (::setns(space, CLONE_NEWNET) == 0) fd = open_diagnosis();
    ::close(space);
  };
  try {
    std::thread(enter).join();
  } catch (const std::system_error&) {
    return -1;  // no thread can be started
  }
  return fd;
}

namespace {

std::optional<std::uint64_t> ask_unix_peer(std::int32_t tid, std::uint64_t inode) {
  if (inode > UINT32_MAX) return std::nullopt;
  const int fd = open_diagnosis_of(tid);
  if (fd < 0) return std::nullopt;
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = AF_UNIX;
  question.request.udiag_states = UINT32_MAX;
  question.request.udiag_ino = static_cast<std::uint32_t>(inode);
  question.request.udiag_show = UDIAG_SHOW_PEER;
  question.request.udiag_cookie[0] = UINT32_MAX;
  question.request.udiag_cookie[1] = UINT32_MAX;
  std::array<std::byte, 4096> answer;
  ssize_t got = -1;
  // The kernel answers during send(). If no answer has come when send() returns, no answer will come.
  if (::send(fd, &question, sizeof question, 0) == static_cast<ssize_t>(sizeof question)) {
    got = ::recv(fd, answer.data(), answer.size(), MSG_DONTWAIT);
  }
  ::close(fd);
  if (got <= 0) return std::nullopt;
  return parse_unix_peer(std::span(answer).first(static_cast<std::size_t>(got)), inode);
}

struct TcpLine {
  std::string local;  // address:port; an IPv4 address that the table has as IPv6 is written as IPv4
  std::string remote;
  std::string_view state;
  bool has_unsent = false;     // the socket has bytes that were not sent, or not acknowledged
  bool is_sent_again = false;  // a timer runs, which will send unacknowledged bytes again
  std::uint64_t inode = 0;
};

std::string plain_address(std::string_view address) {
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";
  if (address.starts_with(kMapped)) address.remove_prefix(kMapped.size());
  return std::string(address);
}

std::optional<TcpLine> parse_tcp_line(std::string_view line) {
  constexpr std::size_t kLocal = 1, kRemote = 2, kState = 3, kQueues = 4, kTimer = 5, kInode = 9;
  std::array<std::string_view, kInode + 1> words{};
  std::size_t count = 0;
  while (count < words.size()) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) return std::nullopt;
    const std::size_t length = std::min(line.find(' '), line.size());
    words[count++] = line.substr(0, length);
    line.remove_prefix(length);
  }
  TcpLine entry{plain_address(words[kLocal]), plain_address(words[kRemote]), words[kState]};
  entry.has_unsent = !words[kQueues].starts_with("00000000:");
  entry.is_sent_again = words[kTimer].starts_with("01:");
  const std::string_view inode = words[kInode];
  if (std::from_chars(inode.data(), inode.data() + inode.size(), entry.inode).ec != std::errc{}) return std::nullopt;
  return entry;
}

void parse_tcp_table(std::string_view text, std::vector<TcpLine>& lines) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto line = parse_tcp_line(text.substr(0, end)); line && line->inode != 0) lines.push_back(std::move(*line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool is_time_set(int fd, int option) {
  timeval value{};
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) != 0 || value.tv_sec != 0 || value.tv_usec != 0;
}

bool has_rate(int fd) {
  std::uint32_t rate = 0;
  socklen_t size = sizeof rate;
  return ::getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size) == 0 && rate != UINT32_MAX;
}

}  // namespace

std::optional<std::uint64_t> parse_unix_peer(std::span<const std::byte> answer, std::uint64_t inode) {
  nlmsghdr header{};
  unix_diag_msg message{};
  if (!copy_out(answer, 0, header) || header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  if (header.nlmsg_len > answer.size() || !copy_out(answer, NLMSG_HDRLEN, message)) return std::nullopt;
  if (message.udiag_ino != inode || message.udiag_state == TCP_LISTEN) return std::nullopt;
  std::size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof message);
  for (rtattr attribute{}; copy_out(answer.first(header.nlmsg_len), at, attribute);
       at += RTA_ALIGN(attribute.rta_len)) {
    if (attribute.rta_len < sizeof attribute) return std::nullopt;
    std::uint32_t peer = 0;
    if (attribute.rta_type != UNIX_DIAG_PEER) continue;
    if (!copy_out(answer.first(header.nlmsg_len), at + RTA_LENGTH(0), peer) || peer == 0) return std::nullopt;
    return peer;
  }
  return std::nullopt;
}

std::optional<Peer> parse_tcp_peer(std::string_view tcp, std::string_view tcp6, std::uint64_t inode) {
  std::vector<TcpLine> lines;
  parse_tcp_table(tcp, lines);
  parse_tcp_table(tcp6, lines);
  const TcpLine* own = nullptr;
  for (const TcpLine& line : lines) {
    if (line.inode == inode) own = &line;
  }
  std::uint8_t state = 0;
  if (own == nullptr || own->state.size() != 2) return std::nullopt;
  std::from_chars(own->state.data(), own->state.data() + own->state.size(), state, 16);
  if (state != kEstablished) return std::nullopt;
  for (const TcpLine& line : lines) {
    if (line.inode != inode && line.local == own->remote && line.remote == own->local)
      return Peer{line.inode, line.has_unsent, own->is_sent_again};
  }
  return std::nullopt;
}

std::optional<Peer> find_peer(std::int32_t tid, std::uint64_t inode) {
  constexpr std::size_t kMaxTable = 4U << 20U;
  if (const auto peer = ask_unix_peer(tid, inode)) return Peer{*peer};
  return parse_tcp_peer(read_file(proc_path(tid, "net/tcp"), kMaxTable).text,
                        read_file(proc_path(tid, "net/tcp6"), kMaxTable).text, inode);
}

std::optional<bool> is_bound_to_time(std::int32_t pid, std::int32_t tid, std::int32_t fd) {
  // A first thread that has ended while others go on has no descriptors. Then another thread must be given to
  // pidfd_open(). Linux 6.9 and later allow this.
  constexpr unsigned kOfThread = O_EXCL;  // PIDFD_THREAD (linux/pidfd.h)
  const std::int32_t living = find_living_thread(pid);
  const std::int32_t owner = share_table(living, tid) ? living : tid;
  const long process = ::syscall(SYS_pidfd_open, owner, owner == pid ? 0 : kOfThread);
  if (process < 0) return std::nullopt;
  // A second descriptor of the same socket, open only while it is queried.
  const long copy = ::syscall(SYS_pidfd_getfd, process, fd, 0);
  ::close(static_cast<int>(process));
  if (copy < 0) return std::nullopt;
  const int socket = static_cast<int>(copy);
  bool has_one = is_time_set(socket, SO_RCVTIMEO) || is_time_set(socket, SO_SNDTIMEO) || has_rate(socket);
  unsigned patience_ms = 0;
  socklen_t size = sizeof patience_ms;
  // getsockopt() fails if the socket is not a TCP socket.
  if (::getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, &size) == 0 && patience_ms != 0) has_one = true;
  ::close(socket);
  return has_one;
}

}  // namespace forksight::proc
