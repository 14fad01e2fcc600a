// The hooks about epoll instances that a fork shared. If a child removes a descriptor from the instance, the descriptor
// is removed for its parent, too. The child records the removal. If the parent later waits on the instance and still
// has the removed file open, the parent records the wait. If the parent is already in a wait when the child removes the
// descriptor, the child records that the parent waits.
// In a process that did not fork with an epoll instance, a call costs one more load and one more branch.
#include <sys/epoll.h>

#include "files/shares.hpp"
#include "guest/kept_errno.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "loader/lazy_next.hpp"
#include "locks/wait_guard.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

using trace::ShareKind;
using trace::ShareRecord;
using trace::ShareUseKind;
using trace::ShareUseRecord;

ShareUseRecord* find_use(std::uint64_t reference) {
  return find_record<ShareUseRecord>(reference, trace::RecordType::kShareUse);
}

FileId file_of(const ShareUseRecord& use) { return {use.device, use.inode, use.mode}; }

// Called when a process has added a descriptor to the instance. The descriptor is then in the instance for both sides
// again, so an earlier removal of the descriptor is forgotten.
__attribute__((noinline)) void note_addition(Share& share, int target) {
  ShareRecord* const record = shared_record(share);
  if (record == nullptr) return;
  for (std::uint64_t& place : record->removed) {
    std::uint64_t reference = __atomic_load_n(&place, __ATOMIC_ACQUIRE);
    const ShareUseRecord* const use = find_use(reference);
    if (use == nullptr || use->target != target) continue;
    __atomic_compare_exchange_n(&place, &reference, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }
  if (!share.is_inherited || share.added_count > kMaxAdded) return;
  if (share.added_count < kMaxAdded) share.added[share.added_count] = target;
  ++share.added_count;
}

bool has_added(const Share& share, int target) {
  if (share.added_count > kMaxAdded) return true;
  for (std::uint32_t i = 0; i < share.added_count; ++i) {
    if (share.added[i] == target) return true;
  }
  return false;
}

std::uint64_t append_removal(const Share& share, ShareUseKind kind, int target, const FileId& file, const Site& site) {
  ShareUseRecord use{};
  use.kind = kind;
  use.target = target;
  use.mode = file.mode;
  use.device = file.device;
  use.inode = file.inode;
  return append_share_use(share, use, site);
}

__attribute__((noinline)) bool is_open_in(std::int32_t owner, int target, const FileId& file) {
  FileId there{};
  return sys::thread_exists(owner, owner) && find_open_file_of(owner, target, there) && there.is_same(file);
}

__attribute__((noinline)) void note_removal(const Share& share, int target, const FileId& file, const Site& site) {
  ShareRecord* const record = shared_record(share);
  if (record == nullptr || !is_open_in(record->owner, target, file)) return;
  const std::uint64_t reference = append_removal(share, ShareUseKind::kRemoved, target, file, site);
  if (reference == 0) return;
  for (std::uint64_t& place : record->removed) {
    std::uint64_t expected = 0;
    if (__atomic_compare_exchange_n(&place, &expected, reference, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) break;
  }
  // wait_shared() counts its wait before it looks for removals. This function stores the removal before it reads the
  // count. So wait_shared() sees the removal, or this function sees the wait.
  if (__atomic_load_n(&record->waiters, __ATOMIC_SEQ_CST) == 0) return;
  if (ShareUseRecord* const use = find_use(reference)) {
    __atomic_fetch_or(&use->flags, trace::kOwnerWaits, __ATOMIC_RELEASE);
  }
}

__attribute__((noinline)) int remove_interest(Share& share, int epoll, int target, epoll_event* event, Frame frame) {
  FileId file{};
  const bool is_known = !has_added(share, target) && find_open_file(target, file);
  const int result = FORKSIGHT_LAZY_NEXT(epoll_ctl)(epoll, EPOLL_CTL_DEL, target, event);
  const KeptErrno kept;
  if (result == 0 && is_known) note_removal(share, target, file, frame.site());
  return result;
}

// Called before the owner waits. Records each removed descriptor whose file the owner still has open. A child whose
// fork the shim did not see has the owner's tables, but is not the owner. In such a child this function does nothing.
__attribute__((noinline)) void look_for_removals(const Share& share, ShareRecord& record, const Site& site) {
  const KeptErrno kept;
  if (record.owner != sys::getpid()) return;
  for (std::uint64_t& place : record.removed) {
    const std::uint64_t reference = __atomic_exchange_n(&place, 0, __ATOMIC_ACQ_REL);
    const ShareUseRecord* const use = find_use(reference);
    if (use == nullptr) continue;
    const int target = use->target;
    FileId now{};
    if (!find_open_file(target, now) || !now.is_same(file_of(*use))) continue;
    append_removal(share, ShareUseKind::kMissed, target, now, site);
  }
}

bool has_removals(const ShareRecord& record) {
  std::uint64_t any = 0;
  for (const std::uint64_t& place : record.removed) any |= __atomic_load_n(&place, __ATOMIC_SEQ_CST);
  return any != 0;
}

struct CountedWait {
  ShareRecord* record;
  std::uint32_t epoch;  // of the process that counted the wait
};

// Removes a wait from the count of waits. A signal handler may fork during the wait. Then the child returns from the
// wait, too. The child did not count this wait, so the child must not subtract it.
void end_wait(void* counted) {
  const auto& wait = *static_cast<const CountedWait*>(counted);
  if (wait.epoch == epoch()) __atomic_fetch_sub(&wait.record->waiters, 1, __ATOMIC_SEQ_CST);
}

template <class Wait>
__attribute__((noinline)) int wait_shared(const Share& share, const Site& site, Wait wait) {
  ShareRecord* const record = shared_record(share);
  if (record == nullptr) return wait();
  __atomic_fetch_add(&record->waiters, 1, __ATOMIC_SEQ_CST);
  CountedWait counted{record, epoch()};
  _pthread_cleanup_buffer buffer;
  const bool is_pushed = push_cleanup(buffer, end_wait, &counted);
  if (FORKSIGHT_UNLIKELY(has_removals(*record))) look_for_removals(share, *record, site);
  const int result = wait();
  pop_cleanup(is_pushed, buffer);
  end_wait(&counted);
  return result;
}

template <class Wait>
__attribute__((always_inline)) inline int wait_for_events(int epoll, Frame frame, Wait wait) {
  const Share* const share = find_shared(epoll, ShareKind::kEpoll);
  if (share == nullptr || share->is_inherited) return wait();
  return wait_shared(*share, frame.site(), wait);
}

int note_epoll(int fd) {
  if (fd >= 0) note_share(fd, ShareKind::kEpoll);
  return fd;
}

}  // namespace

FORKSIGHT_EXPORT(int, epoll_create, int size) { return note_epoll(FORKSIGHT_LAZY_NEXT(epoll_create)(size)); }

FORKSIGHT_EXPORT(int, epoll_create1, int flags) { return note_epoll(FORKSIGHT_LAZY_NEXT(epoll_create1)(flags)); }

FORKSIGHT_EXPORT(int, epoll_ctl, int epoll, int operation, int target, epoll_event* event) {
  const auto real = FORKSIGHT_LAZY_NEXT(epoll_ctl);
  if (FORKSIGHT_LIKELY(g_shared_epolls == 0)) return real(epoll, operation, target, event);
  Share* const share = find_shared(epoll, ShareKind::kEpoll);
  if (share == nullptr) return real(epoll, operation, target, event);
  if (operation == EPOLL_CTL_DEL && share->is_inherited) {
    return remove_interest(*share, epoll, target, event, FORKSIGHT_FRAME());
  }
  const int result = real(epoll, operation, target, event);
  if (operation == EPOLL_CTL_ADD && result == 0) note_addition(*share, target);
  return result;
}

FORKSIGHT_EXPORT(int, epoll_wait, int epoll, epoll_event* events, int room, int timeout) {
  const auto real = FORKSIGHT_LAZY_NEXT(epoll_wait);
  if (FORKSIGHT_LIKELY(g_shared_epolls == 0)) return real(epoll, events, room, timeout);
  return wait_for_events(epoll, FORKSIGHT_FRAME(), [=] { return real(epoll, events, room, timeout); });
}

FORKSIGHT_EXPORT(int, epoll_pwait, int epoll, epoll_event* events, int room, int timeout, const sigset_t* mask) {
  const auto real = FORKSIGHT_LAZY_NEXT(epoll_pwait);
  if (FORKSIGHT_LIKELY(g_shared_epolls == 0)) return real(epoll, events, room, timeout, mask);
  return wait_for_events(epoll, FORKSIGHT_FRAME(), [=] { return real(epoll, events, room, timeout, mask); });
}

FORKSIGHT_EXPORT(int, epoll_pwait2, int epoll, epoll_event* events, int room, const timespec* timeout,
                 const sigset_t* mask) {
  const auto real = FORKSIGHT_LAZY_NEXT(epoll_pwait2);
  if (FORKSIGHT_LIKELY(g_shared_epolls == 0)) return real(epoll, events, room, timeout, mask);
  return wait_for_events(epoll, FORKSIGHT_FRAME(), [=] { return real(epoll, events, room, timeout, mask); });
}
