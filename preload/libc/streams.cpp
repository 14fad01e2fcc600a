#include "libc/streams.hpp"

#include <stdio.h>

#include "forksight/abi/stream_lock.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "locks/lock_memory.hpp"
#include "record/slots.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

Slot* find_lost(std::uint64_t thread_pointer) {
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (slot.thread_pointer == thread_pointer && slot.epoch + 1 == epoch()) return &slot;
  }
  return nullptr;
}

}  // namespace

// Records which standard streams a lost thread had locked at a fork that runs no handlers, for example _Fork(). After
// fork() nothing is recorded, because fork() resets the locks of streams in the child.
void at_fork::Streams::starts(const Fork& fork_now) {
  const std::uint64_t fork = fork_now.record;
  if (fork == 0 || fork_now.kind != ForkKind::kBypassed) return;
  FILE* const streams[] = {stdin, stdout, stderr};
  for (std::int32_t number = 0; number < 3; ++number) {
    FILE file;
    abi::StreamLock lock{};
    // The program may have replaced the standard stream by another one, or by null.
    if (read_memory(streams[number], &file, sizeof file) != sizeof file) continue;
    const void* const address = file._lock;
    if (!read_lock(address, lock) || lock.lock == 0) continue;
    Slot* const holder = find_lost(lock.owner);
    if (holder == nullptr) continue;
    append(trace::RecordType::kStream, trace::StreamRecord{fork, ensure_thread_record(*holder),
                                                           reinterpret_cast<std::uint64_t>(address), number, 0});
  }
}

}  // namespace forksight
