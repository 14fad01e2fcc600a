// Open files that both sides of a fork go on to have, and of which that matters: epoll instances, whose interests a
// child removes for its parent too, and connections, in which the requests and answers of two processes get mixed.
//
// What is known of them are the numbers that this process got them by (epoll_create, connect); what became of a number
// since is asked of the kernel before anything is written down. Duplicates (dup, SCM_RIGHTS) pass by.
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
  std::uint64_t record;  // ref to kShare, 0: there was no fork that was recorded
  bool is_inherited;
  std::uint8_t added_count;       // kEpoll, inherited: interests that this process added; more than fit: nobody knows
  std::int32_t added[kMaxAdded];  // their descriptors
};

// Of those that a fork shared: 0 while the hooks have nothing to do.
extern std::uint32_t g_shared_epolls;
extern std::uint32_t g_shared_connections;

struct FileId {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint32_t mode;

  bool is_same(const FileId& other) const { return device == other.device && inode == other.inode; }
};
// False if it is not open, or may not be looked at.
bool find_open_file(int fd, FileId& out);
bool find_open_file_of(std::int32_t pid, int fd, FileId& out);

// This process has made it. async-signal-safe.
void note_share(int fd, trace::ShareKind kind);
// Null: not known, or not shared.
Share* find_shared(int fd, trace::ShareKind kind);
// What all processes that share it write to; null if that is gone.
trace::ShareRecord* shared_record(const Share& share);
// Of the process that these tables are of: a child that was made unseen has its parent's.
std::int32_t pid_of_shares();
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
