// feed::thread: an unbounded private list, and a thread that sends the messages on it. feed::thread deliberately
// behaves like CPython's multiprocessing.Queue. send_copy() never blocks. The destructor of the handle waits until the
// list is sent, but _exit() loses the list. If the thread cannot send a message, a later call reports the error. At a
// fork, another thread may hold the list's lock. The child then has a copy of the locked lock, but not the thread that
// could unlock it. With options::atfork_handlers, fork() waits for the lock.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core.hpp"
#include "forksight/ipc/delivery.hpp"

namespace forksight::ipc::detail {

class feeder {
 public:
  feeder(std::shared_ptr<core> to, bool atfork_handlers);
  feeder(const feeder&) = delete;
  feeder& operator=(const feeder&) = delete;
  // Waits until all messages are sent. A forked child does not have the thread, so the destructor does not wait there.
  ~feeder();

  // Puts a copy on the list. If an earlier message was lost, the next call returns the reason, and puts nothing on the
  // list.
  result<void> put(const void* data, std::size_t bytes);
  // Waits until all earlier messages are sent or lost.
  result<delivery> flush(deadline until);
  // Accepts no more messages, and waits until those on the list are sent or lost.
  result<delivery> close(deadline until);
  delivery delivered() const;

 private:
  friend struct feeder_forks;
  void run();
  void count_lost(error why);
  result<delivery> answer(bool is_done) const;
  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, deadline until, Done done);

  // The state is on the heap, so that a forked child can leak it. The child must not destroy a condition variable on
  // which a thread of the parent waited at the fork.
  struct state {
    std::mutex mutex;
    std::condition_variable changed;  // the feeder waits on this
    std::condition_variable ended;    // flush() and close() wait on this
    std::deque<std::vector<char>> list;
    std::optional<error> failed;
    delivery counts;  // without `pending`, which delivered() computes
    bool is_closing = false;
    bool has_started = false, has_ended = false;  // the thread was started; the thread has ended its work
  };
  std::shared_ptr<core> core_;
  std::unique_ptr<state> state_;
  std::thread thread_;
  bool has_atfork_ = false;
};

}  // namespace forksight::ipc::detail
