#include "forksight/ipc/handover.hpp"

#include <sys/stat.h>

#include "descriptor_passing.hpp"
#include "failure.hpp"

namespace forksight::ipc {
namespace {

constexpr detail::transfer_kind kQueueTransfer{0x6f686b66, "queue"};  // "fkho"

}  // namespace

result<void> send_queue(int socket, const queue& what, deadline until) {
  if (what.fd() < 0) return detail::failure(errc::closed, "queue: this handle is empty");
  const int fds[] = {what.fd(), what.payload_fd()};
  return detail::send_descriptors(socket, kQueueTransfer, {fds, what.payload_fd() >= 0 ? 2u : 1u}, until);
}

result<queue> receive_queue(int socket, role as, deadline until) {
  auto files = detail::receive_descriptors(socket, kQueueTransfer, until);
  if (!files) return files.error();
  for (const detail::descriptor& one : *files) {
    struct stat about {};
    if (one && (fstat(one.get(), &about) != 0 || !S_ISREG(about.st_mode))) {
      return detail::failure(errc::untrusted, "socket %d: what was sent as a queue is not a regular file", socket);
    }
  }
  return queue::attach((*files)[0].get(), as, (*files)[1].get());
}

}  // namespace forksight::ipc
