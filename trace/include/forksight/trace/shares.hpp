// The part of the trace format about what both parent and child have after a fork: the same epoll instance, the same
// connection, or the same state of a generator of random numbers.
#pragma once

#include <cstdint>

namespace forksight::trace {

enum class ShareKind : std::uint32_t { kEpoll = 1, kConnection = 2 };

inline constexpr std::uint32_t kMaxRemoved = 4;

// A file that a process made, and had open at a fork: an epoll instance, or a stream socket that it had connected.
// Written in prepare, at the first such fork. Fields that are marked "change" are updated in place later. Only the shim
// uses these fields, with atomic accesses.
struct ShareRecord {
  std::uint64_t fork;  // ref to kFork
  ShareKind kind;
  std::int32_t fd;
  std::int32_t owner;                  // pid
  std::uint32_t waiters;               // kEpoll: number of threads of the owner that are inside of a wait; changes
  std::uint64_t removed[kMaxRemoved];  // kEpoll: refs to kRemoved records that the owner has not read yet; change
  // kConnection: users[0] is for sending, users[1] for receiving. The lower half of each word is the pid of the process
  // that last sent or received, at first the pid of the owner. The upper half counts the changes of the lower half.
  // Both words change.
  std::uint64_t users[2];
  std::uint64_t device;
  std::uint64_t inode;
  std::uint32_t peer_bytes;
  std::uint32_t reserved;
  std::uint8_t peer[64];  // kConnection: the beginning of the peer's address, from getpeername()
};
static_assert(sizeof(ShareRecord) == 160);

enum class ShareUseKind : std::uint32_t {
  kRemoved = 1,   // kEpoll: a process that is not the owner removed a descriptor that it had not added itself
  kMissed = 2,    // kEpoll: the owner begins a wait; it has the removed file open, but has not added the file again
  kSent = 3,      // kConnection: a process sends, and the last sender was another process
  kReceived = 4,  // kConnection: a process receives, and the last receiver was another process
};

enum ShareUseFlag : std::uint32_t {
  kOwnerWaits = 1U << 0U,  // kRemoved: the owner has the file open, and is in a wait that it began after the fork
  kUnderLock = 1U << 1U,   // kSent, kReceived: the thread holds a lock that processes share
};

struct ShareUseRecord {
  std::uint64_t share;  // ref to kShare
  std::uint64_t fork;   // ref to the kFork that made this process, 0: this process is the first of this trace
  std::uint64_t stack;  // ref to kStack
  ShareUseKind kind;
  std::uint32_t flags;   // ShareUseFlag
  std::int32_t target;   // kRemoved, kMissed: the descriptor that was removed
  std::uint32_t mode;    // st_mode of the descriptor's file
  std::uint64_t device;  // the device and inode of its file
  std::uint64_t inode;
};
static_assert(sizeof(ShareUseRecord) == 56);

enum class Generator : std::uint32_t { kRandom = 1, kDrand48 = 2 };  // random() and rand() have the same state

// The first number that a forked child draws from the state that it inherited.
struct DrawRecord {
  std::uint64_t fork;   // as in ShareUseRecord; 0 also if the fork was not recorded
  std::uint64_t stack;  // ref to kStack
  std::uint64_t value;  // 31 bits of the generator's state, as random() or lrand48() would return them
  Generator generator;
  std::uint32_t reserved;
};
static_assert(sizeof(DrawRecord) == 32);

}  // namespace forksight::trace
