// One handle of a pool: its place in the queue, its memory, and the rules that say which stream waits for which work.
//
// When may a buffer be written again? The card has the state of the buffer's last reader. `recorded`: the event `done`
// tells when the reader's work is over, and the writer's stream waits for this event. `reading`, although the buffer is
// free: the reader died while it held the buffer. The queue gives back the buffer of a dead reader only after the
// kernel has released the lock that shows the reader's life (ipc/src/life.hpp). The driver must then have ended the
// reader's work on the device; this is the driver's part, and not proven here. The writer does not wait for the event
// of a dead reader, but for its own whole context.
//
// Is a message of a dead writer complete? Its event must not be used any more. But the writer notes in the card when it
// sees that the event is complete. A message without this note is not delivered.
#pragma once

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
  static result<std::shared_ptr<pool>> import(ipc::queue joined, ipc::detail::descriptor card_fd,
                                              ipc::detail::descriptor memory_fd);
  ~pool();

  result<gpu_loan> acquire(stream on, deadline until);
  result<void> send(gpu_loan& from, std::size_t bytes, stream on, deadline until);
  result<gpu_message> receive(stream on, deadline until);
  // Only for the creator. Errors: in_use, used_after_fork. Without an error, the pool is empty afterwards.
  result<void> close();
  bool is_creator() const { return is_creator_; }
  std::size_t recover();

  result<void> check_usable() const;
  const facts& about() const { return card_.about(); }
  device_address data(std::uint32_t index) const { return memory_->is_closed() ? 0 : memory_->at(index); }
  const ipc::queue& as_queue() const { return queue_; }
  int card_fd() const { return card_.fd(); }
  int memory_fd() const { return memory_->fd(); }

  void give_back(ipc::loan& unsent, stream on);
  result<void> release(ipc::message& read, stream on);

 private:
  pool() = default;
  result<void> settle(std::uint32_t buffer, stream on);
  result<void> record_ready(std::uint32_t buffer, stream on);
  void note_finished();
  error producer_died(const char* what) const;
  error failed(int answer, const char* function) const;

  ipc::detail::fork_mark mark_;
  ipc::queue queue_;
  card card_;
  device_memory::use memory_;
  bool is_creator_ = false;
  std::uint64_t start_ = 0;
  bool is_other_namespace_ = false;
  std::mutex lock_;               // guards the member below; only the creator uses it
  std::vector<bool> unfinished_;  // true: `ready` was recorded, and was not seen complete yet
};

}  // namespace detail
}  // namespace forksight::ipc_cuda
