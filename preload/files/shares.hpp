// Open files that are a hazard if both sides of a fork use them. If a child removes a descriptor from a shared epoll
// instance, the descriptor is removed for its parent, too. On a shared connection, requests and answers of the two
// processes get mixed.
//   A table contains the numbers of descriptors: epoll instances that this process got from epoll_create(), and sockets
//   that it connected by connect(). Before the shim records anything about a descriptor, it asks the kernel which file
//   the descriptor refers to now. Duplicates (dup, SCM_RIGHTS) are not followed.
#pragma once

#include <cstdint>

#include "forksight/trace/shares.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"

namespace forksight {

inline constexpr std::uint32_t kMaxAdded = 8;

struct Share {
  std::int32_t fd_plus_one;  // 0: free
  trace::ShareKind kind;
  std::uint64_t record;  // ref to kShare; 0: no recorded fork has shared the file
  bool is_inherited;     // an ancestor opened the file, and a recorded fork shared it
  // For an inherited epoll instance: how many descriptors this process has added. If there are more than kMaxAdded,
  // `added` does not have all of them.
  std::uint8_t added_count;
  std::int32_t added[kMaxAdded];  // the descriptors that this process has added
};

// How many epoll instances and connections of this process a fork has shared. 0: the hooks have nothing to do.
extern std::uint32_t g_shared_epolls;
extern std::uint32_t g_shared_connections;

struct FileId {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint32_t mode;

  bool is_same(const FileId& other) const { return device == other.device && inode == other.inode; }
};
// Sets `out` to the file that the descriptor refers to. False if the descriptor is not open, or cannot be examined.
bool find_open_file(int fd, FileId& out);
bool find_open_file_of(std::int32_t pid, int fd, FileId& out);

// Enters the descriptor into the table. Called when this process has made the epoll instance, or connected the socket,
// with this descriptor. async-signal-safe.
void note_share(int fd, trace::ShareKind kind);
// The entry of this descriptor; null: it is not in the table, or no fork has shared it.
Share* find_shared(int fd, trace::ShareKind kind);
// The record that all sharing processes write to; null if it no longer exists.
trace::ShareRecord* shared_record(const Share& share);
// Returns the pid of the process that this table belongs to. In a child whose fork the shim did not see, this is the
// pid of the parent.
std::int32_t pid_of_shares();
// Writes a kShareUse record, with the fields of `use` and the stack of the caller. Returns its reference.
std::uint64_t append_share_use(const Share& share, trace::ShareUseRecord use, const Site& site);

namespace at_fork {
struct Shares {
  static bool tells();
  static void records(const Fork& fork);
  static void continues(const Fork& fork);
  static void starts_any(std::uint64_t record);
};
}  // namespace at_fork

}  // namespace forksight
