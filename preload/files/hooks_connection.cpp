// The hooks about connections that a fork shared. For each direction (send, receive), the shim notes which process used
// the connection last. If another process is the next one to use the connection in this direction, the shim writes a
// record. The shim follows only stream sockets that were connected by connect(), and only data that goes through
// send(), recv() and similar functions. In a process that did not fork with such a connection, a call costs one more
// load and one more branch.
#include <errno.h>
#include <sys/socket.h>

#include "files/shares.hpp"
#include "guest/kept_errno.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "loader/lazy_next.hpp"
#include "locks/lock_memory.hpp"
#include "record/slots.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

using trace::ShareKind;
using trace::ShareRecord;
using trace::ShareUseKind;

// For each connection and direction, at most this many changes from one process to another are recorded.
constexpr std::uint64_t kMaxChanges = 16;

bool is_shared_lock(std::uint64_t tagged) {
  const auto* const memory = reinterpret_cast<const void*>(lock_address(tagged));
  switch (lock_kind(tagged)) {
    case trace::LockKind::kMutex: return decode_lock<MutexMemory>(memory).is_shared();
    case trace::LockKind::kRwlockRead:
    case trace::LockKind::kRwlockWrite: return decode_lock<RwlockMemory>(memory).shared != 0;
    case trace::LockKind::kSemaphore: return decode_lock<SemaphoreMemory>(memory).shared != 0;
    default: return false;
  }
}

// True if the calling thread holds a lock that processes share. Such a lock may keep the processes from using the
// connection at the same time.
bool has_shared_lock() {
  const Slot* const slot = t_slot;
  if (slot == nullptr) return false;
  for (const HeldLock* entry = slot->held + 1; entry < slot->top; ++entry) {
    if (entry->lock != 0 && is_shared_lock(entry->lock)) return true;
  }
  return false;
}

__attribute__((noinline)) void note_change(const Share& share, int fd, std::uint64_t before, ShareUseKind kind,
                                           const Site& site) {
  const KeptErrno kept;
  ShareRecord* const record = shared_record(share);
  FileId file{};
  const bool is_same =
      record != nullptr && find_open_file(fd, file) && file.is_same({record->device, record->inode, 0});
  if (!is_same || pid_of_shares() != sys::getpid()) return;
  const std::uint64_t changes = (before >> 32U) + 1;
  const std::uint64_t now = changes << 32U | static_cast<std::uint32_t>(pid_of_shares());
  std::uint64_t& user = record->users[kind == ShareUseKind::kSent ? 0 : 1];
  if (!__atomic_compare_exchange_n(&user, &before, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  trace::ShareUseRecord use{};
  use.kind = kind;
  use.flags = has_shared_lock() ? trace::kUnderLock : 0U;
  use.target = fd;
  append_share_use(share, use, site);
}

__attribute__((noinline)) void note_use(int fd, ShareUseKind kind, const Site& site) {
  const Share* const share = find_shared(fd, ShareKind::kConnection);
  ShareRecord* const record = share == nullptr ? nullptr : shared_record(*share);
  if (record == nullptr) return;
  const std::uint64_t user = __atomic_load_n(&record->users[kind == ShareUseKind::kSent ? 0 : 1], __ATOMIC_ACQUIRE);
  if (static_cast<std::int32_t>(user) == pid_of_shares() || user >> 32U >= kMaxChanges) return;
  note_change(*share, fd, user, kind, site);
}

bool is_stream(int fd) {
  int type = 0;
  socklen_t bytes = sizeof type;
  return sys::call(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, sys::word(&type), sys::word(&bytes)) == 0 &&
         type == SOCK_STREAM;
}

}  // namespace

FORKSIGHT_EXPORT(int, connect, int fd, const sockaddr* address, socklen_t bytes) {
  const int result = FORKSIGHT_LAZY_NEXT(connect)(fd, address, bytes);
  const KeptErrno kept;
  if ((result == 0 || errno == EINPROGRESS) && is_stream(fd)) note_share(fd, ShareKind::kConnection);
  return result;
}

#define FORKSIGHT_NOTE_USE(fd, kind) \
  if (FORKSIGHT_UNLIKELY(g_shared_connections != 0)) note_use(fd, ShareUseKind::kind, FORKSIGHT_FRAME().site())

FORKSIGHT_EXPORT(ssize_t, send, int fd, const void* bytes, size_t count, int flags) {
  FORKSIGHT_NOTE_USE(fd, kSent);
  return FORKSIGHT_LAZY_NEXT(send)(fd, bytes, count, flags);
}

FORKSIGHT_EXPORT(ssize_t, sendto, int fd, const void* bytes, size_t count, int flags, const sockaddr* to,
                 socklen_t to_bytes) {
  FORKSIGHT_NOTE_USE(fd, kSent);
  return FORKSIGHT_LAZY_NEXT(sendto)(fd, bytes, count, flags, to, to_bytes);
}

FORKSIGHT_EXPORT(ssize_t, sendmsg, int fd, const msghdr* message, int flags) {
  FORKSIGHT_NOTE_USE(fd, kSent);
  return FORKSIGHT_LAZY_NEXT(sendmsg)(fd, message, flags);
}

// With MSG_PEEK, the data stays in the socket for other processes, so the call does not count as a use.
FORKSIGHT_EXPORT(ssize_t, recv, int fd, void* bytes, size_t room, int flags) {
  if ((flags & MSG_PEEK) == 0) FORKSIGHT_NOTE_USE(fd, kReceived);
  return FORKSIGHT_LAZY_NEXT(recv)(fd, bytes, room, flags);
}

FORKSIGHT_EXPORT(ssize_t, recvfrom, int fd, void* bytes, size_t room, int flags, sockaddr* from,
                 socklen_t* from_bytes) {
  if ((flags & MSG_PEEK) == 0) FORKSIGHT_NOTE_USE(fd, kReceived);
  return FORKSIGHT_LAZY_NEXT(recvfrom)(fd, bytes, room, flags, from, from_bytes);
}

FORKSIGHT_EXPORT(ssize_t, recvmsg, int fd, msghdr* message, int flags) {
  if ((flags & MSG_PEEK) == 0) FORKSIGHT_NOTE_USE(fd, kReceived);
  return FORKSIGHT_LAZY_NEXT(recvmsg)(fd, message, flags);
}
