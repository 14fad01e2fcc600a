// Finds out whether a member lives. No other code decides this.
//
// Each member holds an open file description lock on a byte of the segment's file. Only the member's handle has that
// open file description. The kernel releases the lock when the last reference to the description is closed. So other
// members see from the lock whether the member lives. They need no pid and no clock, so the check works across pid,
// time, user and mount namespaces.
//
// No descriptor refers to the description: a page that is mapped from the file keeps the description open. So the lock
// belongs to the address space of the process. The address space ends with the last thread, so a zombie holds no
// lock. One exception lasts for a moment: while another process reads the memory or the command line of the dead one
// through /proc (as ps does), the kernel keeps the address space, and the member still looks alive. MADV_DONTFORK keeps
// the page out of every child, even out of a child of a raw clone(). exec() unmaps the page. close() of a descriptor
// does not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "descriptor.hpp"
#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

// unknown: nothing shows whether the member lives. Then no process may take its buffers.
enum class member_state : std::uint8_t { alive, dead, unknown };

// Examines the locks of other members through a descriptor of the segment. A result `dead` counts only if can_tell() is
// true: a program may have closed all its descriptors, and then opened another file that got the same number. In that
// file no member holds a lock, so all members would look dead.
class member_lock_view {
 public:
  member_lock_view() = default;
  explicit member_lock_view(int fd);
  // True if the descriptor still belongs to the segment.
  bool can_tell() const;
  // Only for a member with a lock (identity::has_lock). Makes one system call, and opens no descriptor.
  member_state of(std::uint32_t index) const;

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Takes a shared flock() of a named queue's file. All users of the queue hold this lock. While gc() looks for users, it
// holds this lock exclusively for a short time. lock_shared() waits up to a second until gc() has released the lock.
// Returns false on failure, with errno.
bool lock_shared(int fd);

// The lock of this handle. As long as this object exists, no other thread can fork(), because the child would also hold
// the lock.
class member_lock {
 public:
  member_lock();
  member_lock(const member_lock&) = delete;
  member_lock& operator=(const member_lock&) = delete;
  ~member_lock();

  // Opens a second description of the segment's file. `name`: the name of a named queue, else empty. The description of
  // a named queue also gets the shared flock() for gc(). It is no error if no second description can be opened because
  // /proc is missing, or if the kernel or a seccomp filter refuses such locks. Then is_open() is false. A lack of
  // descriptors, memory or locks is an error.
  result<void> open(int segment, const std::string& name);
  bool is_open() const { return static_cast<bool>(file_); }
  // Takes the lock of that entry. Returns false if another member still has it.
  result<bool> take(std::uint32_t index) const;
  void give_back(std::uint32_t index) const;
  // Moves the lock to a page, and returns the page; null if is_open() is false. The lock is then held until end() of
  // the page, or until the process ends.
  result<void*> keep();
  static void end(void* page);

 private:
  descriptor file_;
};

}  // namespace forksight::ipc::detail
