// Whether a member lives: the one place that says it.
//
// Each member holds a lock on a byte of the segment's file: an open file description lock, of a description that only
// this handle has. The kernel gives the lock back when the last reference to that description goes. It asks for no pid
// and no clock, so it is true across pid, time, user and mount namespaces.
//
// The description has no descriptor: it is held by a page that is mapped from it. So what holds the lock is the address
// space of the process, which ends with its last thread, before anybody can wait for the process: a zombie holds none.
// MADV_DONTFORK keeps the page out of every child, a raw clone()'s, too; exec() drops it; close() does not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "descriptor.hpp"
#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

// unknown: nothing says so. Never a reason to take anything from anybody.
enum class life : std::uint8_t { alive, dead, unknown };

// Looks at the locks of others. Through a descriptor that is checked to be the segment's still: a program that closes
// all of its descriptors may have opened another file in the same place, in which nobody holds a lock.
class life_view {
 public:
  life_view() = default;
  explicit life_view(int fd);
  // Asked before the first of a number of looks.
  bool can_tell() const;
  // Only for a member that holds a lock (identity::has_lock). One system call, no descriptor.
  life of(std::uint32_t index) const;

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// flock() of a named queue's file beside all of its other users. gc() has it alone for the instant in which it looks
// whether there are any: that is waited for. False: errno says why.
bool lock_shared(int fd);

// Our own. From open() to keep() or the end no fork() of another thread gets between: a child would hold it as well.
class life_lock {
 public:
  life_lock();
  life_lock(const life_lock&) = delete;
  life_lock& operator=(const life_lock&) = delete;
  ~life_lock();

  // `name`: of a named queue, whose description is locked shared as well, for gc().
  // No error where the kernel gives no second description of the file (no /proc): then it is not open.
  result<void> open(int segment, const std::string& name);
  bool is_open() const { return static_cast<bool>(file_); }
  // False: another has that one still.
  bool take(std::uint32_t index) const;
  void give_back(std::uint32_t index) const;
  // From now on it is held until the end of the process or of the page that is returned; null if it is not open.
  result<void*> keep();
  static void end(void* page);

 private:
  descriptor file_;
};

}  // namespace forksight::ipc::detail
