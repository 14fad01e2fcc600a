// What descriptors refer to, and which processes have the others of the same object: the ends of a pipe, a socket, an
// eventfd, an open file. A scan reads the descriptors of every process that it may read. That is expensive (a readlink
// for each descriptor), so it is made only if everything else about a process says that it is stuck, and once for all
// objects in question.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace forksight::proc {

enum class ObjectKind {
  kOther,    // something by which other causes may end a wait: a terminal, a timer, a device ...
  kPipe,     // "pipe:[17]"
  kSocket,   // "socket:[18]"
  kEventfd,  // "eventfd:3", with the number in fdinfo
  kEpoll,    // fdinfo shows what it watches
  kProcess,  // a pidfd
  kFifo,     // a path, of a FIFO that no process can open any more
  kTimerfd,  // not armed. All have the same name: is_same_file() distinguishes them
};

struct Object {
  ObjectKind kind = ObjectKind::kOther;
  std::string name;
  std::uint64_t inode = 0;  // pipes and sockets
};

// `tid`: a living thread of the process that has the descriptor.
Object find_object(std::int32_t tid, std::int32_t fd);

// True if two descriptors refer to one open file (kcmp(2), KCMP_FILE). nullopt: the kernel does not say.
std::optional<bool> is_same_file(std::int32_t tid, std::int32_t fd, std::int32_t other_tid, std::int32_t other_fd);

struct Holder {
  std::string object;  // Object::name, or a path
  std::int32_t pid = 0;
  std::int32_t tid = 0;  // a thread that has it: /proc/TID/fd is readable also if the first thread has ended
  std::int32_t fd = 0;
  bool reads = false;
  bool writes = false;
};

// All descriptors of these objects. Processes whose descriptors forksight may not read are left out. Those among
// `must_read` that live and cannot be read are added to `refused`.
std::vector<Holder> find_holders(const std::set<std::string>& objects, const std::set<std::int32_t>& must_read,
                                 std::set<std::int32_t>& refused);

// The UNIX sockets of these processes with a message in the queue that carries descriptors ("socket:[17]"). The process
// that receives the message gets the descriptors, and no look can show which these are.
std::set<std::string> find_sockets_with_descriptors(const std::set<std::int32_t>& pids);

// Some descriptor sends a signal when it becomes ready (O_ASYNC).
bool has_signalling_descriptor(std::int32_t tid);

// The process has a device, or queues for asynchronous I/O, by which the kernel may write to an eventfd.
bool may_be_signalled_by_kernel(std::int32_t tid);

// One descriptor of an epoll instance, from a "tfd:" line of fdinfo; nullopt: a line is not understood.
struct EpollEntry {
  std::int32_t fd = 0;  // its number when it was added, which may belong to another file now
  std::uint64_t inode = 0;
};
std::optional<std::vector<EpollEntry>> parse_epoll(std::string_view fdinfo);

// The process behind a pidfd of another process; nullopt if it has ended or cannot be seen.
std::optional<std::int32_t> resolve_pidfd(std::int32_t pid, std::int32_t fd);

}  // namespace forksight::proc
