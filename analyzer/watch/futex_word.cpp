#include "watch/futex_word.hpp"

#include <linux/futex.h>

namespace forksight::watch {
namespace {

// pthread_mutex_t
constexpr std::uint64_t kOwner = 8;
constexpr std::uint64_t kUsers = 12;
constexpr std::uint64_t kKind = 16;
constexpr std::uint32_t kTypeBits = 3;
constexpr std::uint32_t kRobust = 0x10;
constexpr std::uint32_t kKnownKinds = 0x3f3;  // type, robust, PI, PP, shared, and what lock elision notes
constexpr std::uint32_t kMostUsers = 1U << 20U;
constexpr std::uint32_t kContended = 2;  // __lock, of all but robust and PI mutexes

// pthread_rwlock_t
constexpr std::uint64_t kPhaseFutex = 8;
constexpr std::uint64_t kWritersFutex = 12;
constexpr std::uint64_t kWriter = 24;
constexpr std::uint64_t kShared = 28;
constexpr std::uint64_t kFlags = 48;
constexpr std::uint32_t kWritePhase = 1;  // bits of __readers
constexpr std::uint32_t kWriteLocked = 2;
constexpr unsigned kReaderShift = 3;
constexpr std::uint32_t kMostReaders = 1U << 24U;
constexpr std::uint32_t kFutexUsed = 2;
constexpr std::uint32_t kMostFlags = 2;  // kinds: prefer readers, prefer writers, the same and not recursive

// struct pthread
constexpr std::uint64_t kTidInThread = 720;
constexpr std::uint64_t kSelfInThread = 16;

struct Memory {
  const ReadWord& read;
  std::optional<std::uint32_t> word(std::uint64_t address) const {
    const auto value = read(address, sizeof(std::uint32_t));
    return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
  }
};

model::MutexType type_of(std::uint32_t kind) {
  switch (kind & kTypeBits) {
    case 0: return model::MutexType::kNormal;
    case 1: return model::MutexType::kRecursive;
    case 2: return model::MutexType::kErrorcheck;
    default: return model::MutexType::kAdaptive;
  }
}

bool is_mutex(const Memory& memory, std::uint64_t word, std::uint32_t expected, FutexWord& found) {
  const auto lock = memory.word(word);
  const auto owner = memory.word(word + kOwner);
  const auto users = memory.word(word + kUsers);
  const auto kind = memory.word(word + kKind);
  if (!lock || !owner || !users || !kind || (*kind & ~kKnownKinds) != 0) return false;
  const auto tid = static_cast<std::int32_t>(*owner);
  if (tid <= 0 || *users == 0 || *users > kMostUsers) return false;
  const bool is_robust = (*kind & kRobust) != 0;
  if (!is_robust && (expected != kContended || *lock != kContended)) return false;
  if (is_robust && (*lock != expected || (*lock & FUTEX_TID_MASK) != *owner)) return false;
  found.use = model::FutexUse::kMutex;
  found.owner = tid;
  found.mutex_type = type_of(*kind);
  found.lock = word;
  return true;
}

bool is_join(const ReadWord& read, std::uint64_t word, std::uint32_t expected, FutexWord& found) {
  const std::uint64_t thread = word - kTidInThread;
  if (word < kTidInThread || read(thread, 8) != thread || read(thread + kSelfInThread, 8) != thread) return false;
  if (read(word, 4) != expected) return false;
  found.use = model::FutexUse::kJoin;
  found.owner = static_cast<std::int32_t>(expected);
  return true;
}

// Both futexes of a rwlock: readers and the writer that is next sleep on the first, further writers on the second.
bool is_rwlock(const Memory& memory, std::uint64_t word, std::uint32_t expected, FutexWord& found) {
  for (const std::uint64_t futex : {kPhaseFutex, kWritersFutex}) {
    if (word < futex) continue;
    const std::uint64_t lock = word - futex;
    const auto readers = memory.word(lock);
    const auto owner = memory.word(lock + kWriter);
    const auto shared = memory.word(lock + kShared);
    const auto flags = memory.word(lock + kFlags);
    if (!readers || !owner || !shared || !flags || *shared > 1 || *flags > kMostFlags) continue;
    const std::uint32_t count = *readers >> kReaderShift;
    if (memory.word(word) != expected || (expected & kFutexUsed) == 0 || count > kMostReaders) continue;
    const bool write_phase = (*readers & kWritePhase) != 0;
    const bool write_locked = (*readers & kWriteLocked) != 0;
    const auto tid = static_cast<std::int32_t>(*owner);
    const bool by_writer = write_phase && write_locked && tid > 0;
    const bool by_readers = !write_phase && count > 0 && tid == 0;
    if (!by_writer && !by_readers) continue;
    // In a write phase the first futex is waited on by readers; else by the writer for the readers to leave.
    const bool reads = futex == kPhaseFutex && write_phase;
    if (futex == kPhaseFutex && expected != (write_phase ? (kFutexUsed | 1U) : kFutexUsed)) continue;
    if (!reads && !write_locked) continue;
    found.use = reads ? model::FutexUse::kRwlockRead : model::FutexUse::kRwlockWrite;
    found.owner = by_writer ? tid : 0;
    found.readers = by_readers ? count : 0;
    found.lock = lock;
    return true;
  }
  return false;
}

}  // namespace

FutexWord identify_word(const Syscall& call, const ReadWord& read, const HasTask& lives_here,
                        const HasTask& owner_lives) {
  const Memory memory{read};
  const std::uint64_t word = call.args[0];
  const auto expected = static_cast<std::uint32_t>(call.args[2]);
  const std::uint32_t operation = static_cast<std::uint32_t>(call.args[1]);
  const std::uint32_t command = operation & ~static_cast<std::uint32_t>(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
  const bool is_private = (operation & FUTEX_PRIVATE_FLAG) != 0;
  if (command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) return {};
  FutexWord found;
  const bool names_task = static_cast<std::int32_t>(expected) > 0 && lives_here(static_cast<std::int32_t>(expected));
  // pthread_join never sets the PRIVATE flag: it is the kernel that wakes it.
  if (!is_private && names_task && is_join(read, word, expected, found)) return found;
  if (!is_mutex(memory, word, expected, found) && !is_rwlock(memory, word, expected, found)) return {};
  if (found.owner == 0) return found;
  found.owner_is_gone = !owner_lives(found.owner);
  return found;
}

void name_wakers(std::int32_t pid, const WaitTarget& target, WaitFacts& facts) {
  const FutexWord& word = facts.word;
  facts.wakers_known = true;
  if (target.priority_inherit) {
    if (facts.pi_owner) facts.wakers = {{pid, "mutex", *facts.pi_owner}};
    return;
  }
  switch (word.use) {
    case model::FutexUse::kMutex:
      if (!word.owner_is_gone) facts.wakers = {{pid, "mutex", word.owner}};
      break;
    case model::FutexUse::kRwlockRead:
    case model::FutexUse::kRwlockWrite:
      if (!word.owner_is_gone) facts.wakers = {{pid, "rwlock", word.owner}};
      break;
    case model::FutexUse::kJoin: facts.wakers = {{pid, "join", word.owner}}; break;
    case model::FutexUse::kUnknown: break;
  }
  // A lock whose owner is not here could be unlocked all the same, if only by mistake.
  if (facts.wakers.empty()) facts.wakers = {{pid, "futex"}};
}

}  // namespace forksight::watch
