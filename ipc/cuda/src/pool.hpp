// One handle of a pool: its place in the queue, its memory, and the rules that say which stream waits for which work.
//
// When may a buffer be written again? The control block says which process read the buffer's last message, and the
// phase of that reader. In the phase `released`, the word `done` shows when the reader's work is finished, and the
// writer's stream waits for that. If the reader has died, its work has ended, too (device_memory::has_died), and the
// stream does not wait. If the buffer is free and the phase is `reading`, the reader died while it held the buffer. The
// queue frees the buffer of a dead reader only after the kernel has released the reader's lock
// (ipc/src/member_lock.hpp). At that time, the reader's work has ended, too.
//
// A reader may die after a stream has begun to wait for the reader's work. Then any process of the pool can release the
// stream by device_memory::release_streams(). Calls that wait do this whenever they look for dead members of the queue.
//
// Is a message of a dead writer complete? The word `ready` shows up to which message the device had finished the
// writer's work.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device_memory.hpp"
#include "forksight/ipc/queue.hpp"
#include "forksight/ipc_cuda/gpu_pool.hpp"

namespace forksight::ipc_cuda {

struct gpu_loan::state {
  std::shared_ptr<detail::pool> from;
  ipc::loan loan;
  stream on = nullptr;
  ~state();
};

struct gpu_message::state {
  std::shared_ptr<detail::pool> from;
  ipc::message message;
  stream on = nullptr;
  std::size_t bytes = 0;
};

namespace detail {

class pool : public std::enable_shared_from_this<pool> {
 public:
  static result<std::shared_ptr<pool>> create(const pool_options& wanted);
  static result<std::shared_ptr<pool>> import(ipc::queue joined, ipc::detail::descriptor control_fd,
                                              ipc::detail::descriptor memory_fd);
  ~pool();

  result<gpu_loan> acquire(stream on, deadline until);
  result<void> send(gpu_loan& from, std::size_t bytes, stream on, deadline until);
  result<gpu_message> receive(stream on, deadline until);
  // Only for the creator. Errors: in_use, used_after_fork. Without an error, this handle has closed the memory and left
  // the queue.
  result<void> close();
  bool is_creator() const { return is_creator_; }
  std::size_t recover();

  result<void> check_usable() const;
  const facts& about() const { return control_.about(); }
  device_address data(std::uint32_t index) const { return memory_->is_closed() ? 0 : memory_->at(index); }
  const ipc::queue& as_queue() const { return queue_; }
  int control_fd() const { return control_.fd(); }
  int memory_fd() const { return memory_->fd(); }

  void give_back(ipc::loan unsent, stream on);
  // After the errors driver, capturing and bad_option, `read` still has the message.
  result<void> release(ipc::message& read, stream on);
  // Releases a message that the caller will not release itself. If that fails, a later call of the pool tries again.
  void release_somehow(ipc::message read, stream on);

 private:
  // A buffer that could not be given back yet, because its stream cannot record an event now (for example during a
  // capture). Either `unsent` or `read` is set.
  struct postponed {
    ipc::loan unsent;
    ipc::message read;
    stream on = nullptr;
  };

  pool() = default;
  void look_for_dead_processes();
  // Refuses a stream that is being captured, and a stream of another context. Driver 580.159 crashes in
  // cuStreamWaitEvent() if the event is of another context than the stream.
  result<void> check_stream(stream on) const;
  result<void> settle(std::uint32_t buffer, stream on, deadline until);
  // note_use() records the last work on a buffer. close() waits for the recorded work. If the next work on the buffer
  // is on another stream, follow_use() makes that stream wait for the recorded work.
  result<void> note_use(std::uint32_t buffer, stream on) const;
  result<void> follow_use(std::uint32_t buffer, stream on) const;
  result<std::uint32_t> record_ready(std::uint32_t buffer, stream on);
  result<void> record_done(std::uint32_t buffer, std::uint32_t message, stream on);
  bool is_finished(std::uint32_t buffer, std::uint32_t message) const;
  void retry_postponed();
  void end_postponed();
  result<ipc::message> next_message(deadline until);
  error producer_died(const char* what) const;
  error failed(int answer, const char* function) const;

  ipc::detail::fork_mark mark_;
  ipc::queue queue_;
  control_block control_;
  device_memory::use memory_;
  bool is_creator_ = false;
  std::mutex lock_;  // guards the members below
  std::vector<postponed> postponed_;
  std::deque<ipc::message> put_back_;  // received from the queue, but not given to the program because of an error
};

}  // namespace detail
}  // namespace forksight::ipc_cuda
