#include "record/own_ids.hpp"

#include "forksight/abi/thread.hpp"
#include "guest/sys.hpp"
#include "loader/libc.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr long kSameMemory = 1;  // KCMP_VM
constexpr long kNoSuchProcess = -3;

// Offset of the thread's id in struct pthread. 0: forksight does not know the offset for this glibc, or the word at the
// offset was not the id that the kernel gives.
constinit std::size_t g_tid_offset = 0;
// The id of this process. Stored when the shim starts, and in each forked child whose fork the shim saw.
FORKSIGHT_WRITTEN_AT_FORK constinit std::int32_t g_pid = 0;

std::int32_t read_libcs_tid(const void* thread_pointer) {
  return __atomic_load_n(
      reinterpret_cast<const std::int32_t*>(static_cast<const std::byte*>(thread_pointer) + g_tid_offset),
      __ATOMIC_ACQUIRE);
}

// True if the two processes share their memory, or if the kernel does not say whether they do. If the answer is true by
// mistake, the ids stay unchanged. If the answer were false by mistake, a process would lose its slots to another
// process that shares its memory, which is worse.
bool may_share_memory(std::int32_t pid, std::int32_t other) {
  const long order = sys::call(SYS_kcmp, pid, other, kSameMemory);
  return order == 0 || (order < 0 && order != kNoSuchProcess);
}

}  // namespace

void start_own_ids() {
  g_pid = sys::getpid();
  const abi::ThreadLayout* const layout = abi::thread_layout(g_libc.version);
  if (layout == nullptr) return;
  g_tid_offset = layout->tid;
  if (read_libcs_tid(__builtin_thread_pointer()) != sys::gettid()) g_tid_offset = 0;
}

std::int32_t lock_tid() { return g_tid_offset != 0 ? read_libcs_tid(__builtin_thread_pointer()) : sys::gettid(); }

bool has_initial_thread_ended(const Slot& slot) {
  // 0: the kernel has cleared the id, because the thread has ended. -1: pthread_join() has stored this value
  // (__pthread_clockjoin_ex() of nptl/pthread_join_common.c).
  return g_tid_offset != 0 && slot.is_initial_stack &&
         read_libcs_tid(reinterpret_cast<const void*>(slot.thread_pointer)) <= 0;
}

void renew_own_ids(Slot* self) {
  const std::int32_t pid = sys::getpid();
  g_pid = pid;
  if (self == nullptr) return;
  self->epoch = epoch();
  self->tid = pid;
  self->lock_tid = lock_tid();
  self->flags |= trace::kThreadMain;
  self->record = 0;
  self->overflow = 0;
  self->open_touch = 0;
  t_fork_is_told = false;
}

void notice_unseen_fork() {
  const std::int32_t pid = sys::getpid();
  if (pid == g_pid || epoch() == 0 || may_share_memory(g_pid, pid)) return;
  begin_next_epoch();
  renew_own_ids(t_slot);
}

}  // namespace forksight
