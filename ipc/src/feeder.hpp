// feed::thread: a private list without bound, and a thread that sends what is on it. As in CPython's
// multiprocessing.Queue, on purpose: send_copy() never blocks, the process' end waits for the list to be sent, _exit()
// loses it, an error comes up later, and a child of fork() has the list's lock without the thread that held it unless
// options::atfork_handlers takes it across.
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
  // Waits until all is sent. In a forked child: leaves the thread that is not there alone.
  ~feeder();

  // Puts a copy on the list. An error of an earlier message, which is lost, is returned once.
  result<void> put(const void* data, std::size_t bytes);
  // All that was put before is sent or lost.
  result<delivery> flush(deadline until);
  // All that is on the list is sent or lost, and then nothing more.
  result<delivery> close(deadline until);
  delivery delivered() const;

 private:
  friend struct feeder_forks;
  void run();
  void count_lost(error why);
  result<delivery> answer(bool is_done) const;
  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, deadline until, Done done);

  // On the heap, as are those of CPython's queue: a child of fork() must not destroy what its thread waits on.
  struct state {
    std::mutex mutex;
    std::condition_variable changed;  // for the feeder
    std::condition_variable ended;    // for those that wait for the feeder
    std::deque<std::vector<char>> list;
    std::optional<error> failed;
    delivery counts;  // without `pending`
    bool is_closing = false;
    bool has_started = false, has_ended = false;  // the thread
  };
  std::shared_ptr<core> core_;
  std::unique_ptr<state> state_;
  std::thread thread_;
  bool has_atfork_ = false;
};

}  // namespace forksight::ipc::detail
