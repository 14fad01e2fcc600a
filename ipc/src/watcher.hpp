// Keeps a descriptor for event loops readable while a call that does not wait would return anything but `timeout`.
//
// A thread of this handle waits as receive() or acquire() does: it has a turn of its own, and looks for dead members as
// often as these calls do. But the thread takes nothing. When a call would return something, the thread makes an
// eventfd readable, and keeps its turn for kTurnNs. So the program's next call has a turn even if other members wait. A
// call that finds nothing clears the eventfd, and asks the thread to look again. The thread's look comes after the
// call's look. So the thread does not miss what becomes available in between.
//
// The thread takes no lock, so a fork cannot leave one taken. A forked child has no such thread, and gets a handle of
// its own, which can have its own descriptor.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "core.hpp"
#include "descriptor.hpp"

namespace forksight::ipc::detail {

class watcher {
 public:
  // `of` must exist longer than the watcher.
  static result<std::unique_ptr<watcher>> start(core& of, wait_kind kind);
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;
  // Ends the thread.
  ~watcher();
  // For a forked child, in which the thread does not exist.
  void forget_thread();

  int fd() const { return event_.get(); }
  // If the descriptor is readable, makes it unreadable, and lets the thread look again.
  void look_again();

  // Only the watcher's thread calls these.
  std::uint32_t asked() const { return asked_.load(); }
  bool is_over() const { return is_over_.load(); }

 private:
  watcher(core& of, wait_kind kind, descriptor event) : core_(of), kind_(kind), event_(std::move(event)) {}
  void run();
  void signal();
  // Sleeps until asked() differs from `seen`, but at most `ns` nanoseconds. If `ns` is 0, there is no limit.
  void wait_until_asked(std::uint32_t seen, std::uint64_t ns);
  void ask();

  core& core_;
  wait_kind kind_;
  descriptor event_;
  std::atomic<std::uint32_t> asked_{0};  // a futex
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace forksight::ipc::detail
