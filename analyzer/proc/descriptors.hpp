// Tells which object a descriptor refers to: an end of a pipe, a socket, an eventfd, an open file. descriptor_tables.hpp
// tells which processes have other descriptors of that object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forksight::proc {

enum class ObjectKind {
  kOther,    // another object (a terminal, a timer, a device ...): a wait for it may end without any process
  kPipe,     // "pipe:[17]"
  kSocket,   // "socket:[18]"
  kEventfd,  // "eventfd:3", with the number in fdinfo
  kEpoll,    // fdinfo shows which descriptors it watches
  kProcess,  // a pidfd
  kFifo,     // a FIFO that no process can open any more; its name is a path
  kTimerfd,  // a timer that is not armed. All timerfds have the same name; is_same_file() distinguishes them
};

struct Object {
  ObjectKind kind = ObjectKind::kOther;
  std::string name;
  std::uint64_t inode = 0;  // pipes and sockets
};

// The threads of a process share one table of descriptors, unless a thread has got a table of its own
// (unshare(CLONE_FILES)). Then the same number may mean different files in two tables, and a file may be open in one
// table only. Returns one living thread for each table of the process. `pid`: the process, or any of its threads.
std::vector<std::int32_t> find_tables(std::int32_t pid);
// True if two threads have one table (kcmp(2), KCMP_FILES). Also true if the kernel does not say.
bool share_table(std::int32_t tid, std::int32_t other_tid);

struct Descriptor {
  std::int32_t tid = 0;  // a living thread that has this descriptor
  std::int32_t fd = 0;
};
// Returns the object to which descriptor `fd` refers. `tid`: a living thread that has the descriptor.
Object find_object(std::int32_t tid, std::int32_t fd);

// True if two descriptors refer to one open file (kcmp(2), KCMP_FILE). nullopt: the kernel does not say.
std::optional<bool> is_same_file(std::int32_t tid, std::int32_t fd, std::int32_t other_tid, std::int32_t other_fd);

struct Holder {
  std::string object;  // Object::name, or a path
  std::int32_t pid = 0;
  // a living thread that has the descriptor: its /proc/TID/fd is readable even if the first thread has ended
  std::int32_t tid = 0;
  std::int32_t fd = 0;  // -1: the descriptor was closed while the tables were read
  bool reads = false;
  bool writes = false;
};

// True if the descriptor sends a signal when it becomes ready (O_ASYNC). Pure.
bool is_signalling(std::string_view fdinfo);

inline constexpr std::string_view kEventfdLink = "anon_inode:[eventfd]";
inline constexpr std::string_view kEventfdName = "eventfd:";
// Returns Object::name of an eventfd; "" if `fdinfo` does not show its number. Pure.
std::string name_eventfd(std::string_view fdinfo);

// One descriptor that an epoll instance watches, from a "tfd:" line of fdinfo.
struct EpollEntry {
  std::int32_t fd = 0;  // the number of the descriptor when it was added; may belong to another file now
  std::uint64_t inode = 0;
};
std::optional<std::vector<EpollEntry>> parse_epoll(std::string_view fdinfo);  // nullopt: a "tfd:" line is invalid

// Returns the process to which a pidfd of process `pid` refers. nullopt: the process has ended, or cannot be seen.
std::optional<std::int32_t> resolve_pidfd(std::int32_t pid, std::int32_t fd);

}  // namespace forksight::proc
