// What descriptors stand for, and who holds the others of the same object: the ends of a pipe, a socket, an eventfd, an
// open file. A scan of the descriptors of every process that may be read: dear (a readlink a descriptor), so it is made
// only when everything else about a process says that it is stuck, and once for all objects that are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace forksight::proc {

enum class ObjectKind {
  kOther,    // whatever it is, somebody else may end a wait for it: a terminal, a timer, a device ...
  kPipe,     // "pipe:[17]"
  kSocket,   // "socket:[18]"
  kEventfd,  // "eventfd:3", by the number in fdinfo
  kEpoll,    // what it watches is in fdinfo
  kProcess,  // a pidfd
  kFifo,     // a path: of a FIFO that nobody can open any more
  kTimerfd,  // one that is not armed. The name says no more than that: is_same_file() tells two apart
};

struct Object {
  ObjectKind kind = ObjectKind::kOther;
  std::string name;
  std::uint64_t inode = 0;  // pipes and sockets
};

// `tid`: a thread that lives, of the process whose descriptor it is.
Object find_object(std::int32_t tid, std::int32_t fd);

// Whether two descriptors are of one open file (kcmp(2), KCMP_FILE). nullopt: the kernel does not say.
std::optional<bool> is_same_file(std::int32_t tid, std::int32_t fd, std::int32_t other_tid, std::int32_t other_fd);

struct Holder {
  std::string object;  // Object::name, or a path
  std::int32_t pid = 0;
  std::int32_t tid = 0;  // of a thread that has it: /proc/TID/fd, where the first thread has ended
  std::int32_t fd = 0;
  bool reads = false;
  bool writes = false;
};

// All descriptors of these objects. Processes whose descriptors we may not read are left out; those among `must_read`
// that are alive and refuse are added to `refused`.
std::vector<Holder> find_holders(const std::set<std::string>& objects, const std::set<std::int32_t>& must_read,
                                 std::set<std::int32_t>& refused);

// The UNIX sockets of these processes in whose queue a message waits that brings descriptors with it ("socket:[17]").
// Whoever takes it has them then, and no look can tell which they are.
std::set<std::string> find_sockets_with_descriptors(const std::set<std::int32_t>& pids);

// Some descriptor sends a signal once it is ready (O_ASYNC).
bool has_signalling_descriptor(std::int32_t tid);

// Holds a device, or queues for asynchronous I/O, by which the kernel may write to an eventfd.
bool may_be_signalled_by_kernel(std::int32_t tid);

// The descriptors of the "tfd:" lines of an epoll's fdinfo; nullopt: one cannot be understood.
struct EpollEntry {
  std::int32_t fd = 0;  // its number when it was added: may be another file's now
  std::uint64_t inode = 0;
};
std::optional<std::vector<EpollEntry>> parse_epoll(std::string_view fdinfo);

// The process behind a pidfd of another process; nullopt if it has ended or cannot be seen.
std::optional<std::int32_t> resolve_pidfd(std::int32_t pid, std::int32_t fd);

}  // namespace forksight::proc
