#include "proc/futex_word.hpp"

#include <linux/futex.h>

#include <array>
#include <cstddef>

#include "forksight/abi/mutex.hpp"
#include "forksight/abi/rwlock.hpp"
#include "forksight/abi/stream_lock.hpp"
#include "forksight/abi/thread.hpp"
#include "libc/mutex_type.hpp"

namespace forksight::proc {
namespace {

constexpr std::uint32_t kKnownKinds = abi::Mutex::kTypeBits | abi::Mutex::kAttributes | abi::Mutex::kElision;
constexpr std::uint32_t kMostUsers = 1U << 20U;
constexpr std::int32_t kGreatestTid = 1 << 22;  // PID_MAX_LIMIT of include/linux/threads.h
constexpr std::uint32_t kMostReaders = 1U << 24U;

// Reads a lock at `address`, word by word; nullopt if not all of it can be read.
template <class T>
std::optional<T> read_lock(const ReadWord& read, std::uint64_t address) {
  std::array<std::uint32_t, sizeof(T) / sizeof(std::uint32_t)> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto word = read(address + i * sizeof(std::uint32_t), sizeof(std::uint32_t));
    if (!word) return std::nullopt;
    words[i] = static_cast<std::uint32_t>(*word);
  }
  return abi::load<T>(words.data());
}

bool is_mutex(const ReadWord& read, std::uint64_t word, std::uint32_t expected, FutexWord& found) {
  const auto mutex = read_lock<abi::Mutex>(read, word);
  if (!mutex || (mutex->kind & ~kKnownKinds) != 0) return false;
  if (mutex->lock != expected) return false;
  const std::int32_t owner = mutex->holder();
  if (owner <= 0 || owner > kGreatestTid || mutex->users == 0 || mutex->users > kMostUsers) return false;
  const std::uint32_t state = mutex->has_ceiling() ? mutex->lock & ~abi::Mutex::kCeilingBits : mutex->lock;
  const bool fits = mutex->is_robust() ? mutex->owner == owner || mutex->owner == abi::Mutex::kInconsistent
                                       : state == abi::Mutex::kContended;
  if (!fits) return false;
  found.use = model::FutexUse::kMutex;
  found.owner = owner;
  found.mutex_type = libc::type_of(*mutex);
  found.lock = word;
  return true;
}

bool is_join(const ReadWord& read, const abi::ThreadLayout& layout, std::uint64_t word, std::uint32_t expected,
             FutexWord& found) {
  const std::uint64_t thread = word - layout.tid;
  if (!layout.is_joined_by_tid || word < layout.tid) return false;
  if (read(thread, 8) != thread || read(thread + abi::kSelfInThread, 8) != thread) return false;
  if (read(word, 4) != expected) return false;
  found.use = model::FutexUse::kJoin;
  found.owner = static_cast<std::int32_t>(expected);
  return true;
}

// The lock of a FILE works like a recursive mutex, but has another layout. It records the owner as the address of the
// owner's struct pthread. A struct pthread contains its own address. In the layout of a mutex, the two halves of the
// address would look like the owner and the user count.
bool is_stream(const ReadWord& read, const abi::ThreadLayout& layout, std::uint64_t word, std::uint32_t expected,
               FutexWord& found) {
  constexpr std::uint32_t kContended = 2;
  const auto lock = read_lock<abi::StreamLock>(read, word);
  if (!lock || lock->lock != kContended || expected != kContended || lock->owner % 16 != 0) return false;
  if (lock->owner == 0 || lock->count == 0 || lock->count > kMostUsers) return false;
  if (read(lock->owner, 8) != lock->owner || read(lock->owner + abi::kSelfInThread, 8) != lock->owner) return false;
  const auto tid = read(lock->owner + layout.tid, 4);
  if (!tid) return false;
  // The kernel clears the tid in the struct pthread when the thread ends, and pthread_join() sets it to -1. So the tid
  // of an owner that has ended is not known.
  if (static_cast<std::int32_t>(*tid) <= 0) return true;
  found.use = model::FutexUse::kMutex;
  found.owner = static_cast<std::int32_t>(*tid);
  found.mutex_type = model::MutexType::kRecursive;
  found.lock = word;
  return true;
}

// True for a reader that lets a waiting writer go first. Such a reader sleeps on the first word of the lock, which
// contains the number of readers.
bool is_behind_writer(const ReadWord& read, std::uint64_t word, std::uint32_t expected, FutexWord& found) {
  const auto lock = read_lock<abi::Rwlock>(read, word);
  if (!lock || lock->shared < 0 || lock->shared > 1 || lock->flags != abi::Rwlock::kReadersWaitBehindWriters)
    return false;
  constexpr std::uint32_t kBits = abi::Rwlock::kWriteLocked | abi::Rwlock::kReadersWait;
  const bool fits = lock->readers == expected && (expected & (kBits | abi::Rwlock::kWritePhase)) == kBits;
  if (!fits || lock->reader_count() == 0 || lock->reader_count() > kMostReaders || lock->cur_writer != 0) return false;
  found.use = model::FutexUse::kRwlockRead;
  found.readers = lock->reader_count();
  found.lock = word;
  return true;
}

// True for a waiter at one of the two futexes of a rwlock. Readers and the next writer sleep on the first futex, and
// further writers on the second.
bool is_rwlock(const ReadWord& read, std::uint64_t word, std::uint32_t expected, FutexWord& found) {
  constexpr std::uint64_t kPhaseFutex = offsetof(abi::Rwlock, wrphase_futex);
  for (const std::uint64_t futex : {kPhaseFutex, std::uint64_t{offsetof(abi::Rwlock, writers_futex)}}) {
    if (word < futex) continue;
    const auto lock = read_lock<abi::Rwlock>(read, word - futex);
    if (!lock || lock->shared < 0 || lock->shared > 1 || lock->flags > abi::Rwlock::kHighestKind) continue;
    const std::uint32_t value = futex == kPhaseFutex ? lock->wrphase_futex : lock->writers_futex;
    if (value != expected || (expected & abi::Rwlock::kFutexUsed) == 0 || lock->reader_count() > kMostReaders) continue;
    const bool write_phase = lock->is_write_phase();
    const bool by_writer =
        write_phase && lock->is_write_locked() && lock->cur_writer > 0 && lock->cur_writer <= kGreatestTid;
    const bool by_readers = !write_phase && lock->reader_count() > 0 && lock->cur_writer == 0;
    if (!by_writer && !by_readers) continue;
    // In a write phase, readers wait on the first futex. Otherwise the next writer waits on the first futex until the
    // readers leave.
    const bool reads = futex == kPhaseFutex && write_phase;
    if (futex == kPhaseFutex && expected != (abi::Rwlock::kFutexUsed | (write_phase ? 1U : 0U))) continue;
    if (!reads && !lock->is_write_locked()) continue;
    found.use = reads ? model::FutexUse::kRwlockRead : model::FutexUse::kRwlockWrite;
    found.owner = by_writer ? lock->cur_writer : 0;
    found.readers = by_readers ? lock->reader_count() : 0;
    found.lock = word - futex;
    return true;
  }
  return false;
}

}  // namespace

// glibc's sysdeps/unix/sysv/linux/x86_64/syscall.S is the same in all versions. The code takes the call's sixth
// argument from the stack with `mov 0x8(%rsp),%r9`, just before the instruction `syscall`.
bool is_in_syscall_function(const Syscall& call, const ReadWord& read) {
  constexpr std::uint64_t kBytes = 7;
  constexpr std::uint64_t kCode = 0x05'0f'08'24'4c'8b'4c;
  constexpr std::uint64_t kMask = (std::uint64_t{1} << (8 * kBytes)) - 1;
  if (call.pc < kBytes) return false;
  const auto code = read(call.pc - kBytes, sizeof(std::uint64_t));
  return code && (*code & kMask) == kCode;
}

FutexWord identify_word(const Syscall& call, abi::Version libc, const ReadWord& read, const HasTask& lives_here,
                        const HasTask& owner_lives) {
  const std::uint64_t word = call.args[0];
  const auto expected = static_cast<std::uint32_t>(call.args[2]);
  const std::uint32_t operation = static_cast<std::uint32_t>(call.args[1]);
  const std::uint32_t command = operation & ~static_cast<std::uint32_t>(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  const bool is_private = (operation & FUTEX_PRIVATE_FLAG) != 0;
  if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) return {};
  if (is_in_syscall_function(call, read)) return {};
  FutexWord found;
  const auto names_task = [&] {
    const auto tid = static_cast<std::int32_t>(expected);
    return tid > 0 && lives_here(tid);
  };
  const abi::ThreadLayout* const thread = abi::thread_layout(libc);
  // pthread_join() never sets the PRIVATE flag, because the kernel itself wakes the thread that joins.
  if (!is_private && names_task() && thread != nullptr && is_join(read, *thread, word, expected, found)) return found;
  if (is_private && thread != nullptr && abi::StreamLock::kVersions.have(libc) &&
      is_stream(read, *thread, word, expected, found)) {
    found.owner_is_gone = found.owner != 0 && !owner_lives(found.owner);
    return found;
  }
  const bool is_lock = (abi::Mutex::kVersions.have(libc) && is_mutex(read, word, expected, found)) ||
                       (abi::Rwlock::kVersions.have(libc) &&
                        (is_rwlock(read, word, expected, found) || is_behind_writer(read, word, expected, found)));
  if (!is_lock) return {};
  if (found.owner == 0) return found;
  found.owner_is_gone = !owner_lives(found.owner);
  return found;
}

}  // namespace forksight::proc
