#include "descriptor_passing.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "failure.hpp"
#include "layout.hpp"

namespace forksight::ipc::detail {
namespace {

struct hello {
  std::uint32_t magic;
  std::uint16_t major;
  std::uint16_t descriptors;
};
static_assert(sizeof(hello) == 8);

// The bytes of a transfer, and space for its descriptors. The space is aligned as the macros of cmsg(3) require.
struct envelope {
  hello bytes{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
};

result<void> check_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return failed_call(errno, "socket %d: a queue can be sent only over a connected AF_UNIX socket: SO_PEERCRED",
                       socket);
  }
  // These are the ids at the time of connect() or socketpair(). A process that has given up root's rights may still
  // have a socket that it made as root. So a peer of root is accepted. This is safe, because root can read and change
  // the memory of this process anyway.
  if (peer.uid != geteuid() && peer.uid != 0) {
    return failure(errc::untrusted,
                   "socket %d: its peer, process %d, belongs to user %u, but this process belongs to user %u: the "
                   "peer must belong to the same user, or to root",
                   socket, peer.pid, peer.uid, geteuid());
  }
  return {};
}

result<void> wait_for(int socket, short events, const transfer_kind& kind, deadline until) {
  for (;;) {
    int milliseconds = -1;
    if (!until.is_never()) {
      // A difference from a time that has long passed could overflow.
      const auto now = deadline::clock::now();
      const auto left = until.at() <= now ? std::chrono::milliseconds(0)
                                          : std::chrono::ceil<std::chrono::milliseconds>(until.at() - now);
      milliseconds = static_cast<int>(std::clamp<long long>(left.count(), 0, 3'600'000));
    }
    pollfd ask{socket, events, 0};
    const int ready = poll(&ask, 1, milliseconds);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return failed_call(errno, "socket %d: poll", socket);
    if (ready == 0 && milliseconds < 3'600'000) {
      if (events != POLLIN)
        return failure(errc::timeout, "socket %d: its peer did not read before the deadline, so nothing was sent",
                       socket);
      return failure(errc::timeout, "socket %d: its peer did not send a %s before the deadline", socket, kind.what);
    }
  }
}

// Takes the descriptors out of the received message at once, so that none leaks if an error follows.
descriptors descriptors_of(msghdr& received) {
  descriptors found;
  std::size_t count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&received); part != nullptr; part = CMSG_NXTHDR(&received, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t bytes = part->cmsg_len - CMSG_LEN(0);
    for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      descriptor taken(fd);
      if (count < found.size()) found[count++] = std::move(taken);
    }
  }
  return found;
}

}  // namespace

result<void> send_descriptors(int socket, const transfer_kind& kind, std::span<const int> fds, deadline until) {
  if (auto good = check_peer(socket); !good) return good;
  envelope out;
  out.bytes = {kind.magic, kMajor, static_cast<std::uint16_t>(fds.size())};
  iovec data{&out.bytes, sizeof out.bytes};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = out.control.data();
  header.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* const part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  std::size_t sent = 0;
  while (sent < sizeof out.bytes) {
    if (auto ready = wait_for(socket, POLLOUT, kind, until); !ready) return ready;
    data = {reinterpret_cast<char*>(&out.bytes) + sent, sizeof out.bytes - sent};
    const ssize_t got = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return failed_call(errno, "socket %d: sending a %s", socket, kind.what);
    }
    sent += static_cast<std::size_t>(got);
    // The descriptors went with the first byte, and must not be sent again.
    header.msg_control = nullptr;
    header.msg_controllen = 0;
  }
  return {};
}

result<descriptors> receive_descriptors(int socket, const transfer_kind& kind, deadline until) {
  if (auto good = check_peer(socket); !good) return good.error();
  envelope in;
  descriptors files;
  std::size_t received = 0;
  while (received < sizeof in.bytes) {
    if (auto ready = wait_for(socket, POLLIN, kind, until); !ready) return ready.error();
    iovec data{reinterpret_cast<char*>(&in.bytes) + received, sizeof in.bytes - received};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = in.control.data();
    header.msg_controllen = in.control.size();
    const ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return failed_call(errno, "socket %d: receiving a %s", socket, kind.what);
    }
    if (got == 0) {
      return failure(errc::closed, "socket %d: its peer closed the socket without sending a %s", socket, kind.what);
    }
    auto found = descriptors_of(header);
    if ((header.msg_flags & MSG_CTRUNC) != 0) {
      // Every element of `found` has a descriptor, so this process had enough free descriptors: the peer sent too many.
      if (found.back()) {
        return failure(errc::untrusted, "socket %d: its peer sent more descriptors than a %s has", socket, kind.what);
      }
      return failure(errc::fd_limit,
                     "socket %d: its peer sent a %s, but this process can open no more descriptors: %s; raise the "
                     "limit with ulimit -n, and let the peer send again",
                     socket, kind.what, descriptor_use().c_str());
    }
    if (received == 0) files = std::move(found);
    received += static_cast<std::size_t>(got);
  }
  if (in.bytes.magic != kind.magic) {
    return failure(errc::untrusted, "socket %d: its peer sent something else than a %s (it begins with %08x)", socket,
                   kind.what, in.bytes.magic);
  }
  if (in.bytes.major != kMajor) {
    return failure(errc::abi_mismatch,
                   "socket %d: its peer sent a %s of version %u, but this program has version %u: build both programs "
                   "with one version",
                   socket, kind.what, in.bytes.major, kMajor);
  }
  if (!files[0] || (in.bytes.descriptors == 2) != static_cast<bool>(files[1])) {
    return failure(errc::untrusted, "socket %d: its peer sent a %s without its descriptors", socket, kind.what);
  }
  return files;
}

}  // namespace forksight::ipc::detail
