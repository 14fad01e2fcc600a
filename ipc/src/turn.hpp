// The turn of one thread that waits for a message, a slot or a buffer.
#pragma once

#include <atomic>
#include <cstdint>

#include "core.hpp"
#include "process.hpp"

namespace forksight::ipc::detail {

// A wait of one thread. The destructor passes the turn on, even if pthread_cancel() unwinds the stack.
class core::turn {
 public:
  turn(core& of, wait_kind kind) : of_(of), kind_(kind) { add_own(threads(), 1U); }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  ~turn() {
    const ring& view = of_.memory_.view();
    const std::uint32_t index = of_.who_.index();
    const bool was_last = add_own(threads(), ~0U) == 1;
    // After an eviction the entry may belong to another participant.
    if (of_.who_.is_evicted()) return;
    if (was_last) {
      end_wait(view, kind_, index);
      // Another thread of this handle may have begun to wait before end_wait() cleared the handle's bit. So the bit is
      // set again, and that thread is woken, so that it checks once more.
      if (threads().load() != 0) {
        (void)begin_wait(view, kind_, index);
        wake_all(view, kind_);
      }
    } else if (was_served_) {
      take_new_ticket(view, kind_, index);
    }
    (void)pass_on(view, kind_, coarse_ns());
  }
  void was_served() { was_served_ = true; }

 private:
  std::atomic<std::uint32_t>& threads() const { return of_.threads_waiting_[static_cast<std::size_t>(kind_)]; }
  core& of_;
  wait_kind kind_;
  bool was_served_ = false;
};

}  // namespace forksight::ipc::detail
