// A queue of buffers between processes of one host. A producer writes into a loan, a consumer reads the message; only
// an index moves. Whoever dies, at any instruction, is found dead and what it held is given to the others: nothing
// hangs, and every error says who holds what.
//
// A queue may be used by any number of threads of its process at once. After fork() the child needs a handle of its
// own: reattach_after_fork().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "forksight/ipc/delivery.hpp"
#include "forksight/ipc/options.hpp"
#include "forksight/ipc/result.hpp"
#include "forksight/ipc/snapshot.hpp"

namespace forksight::ipc {
namespace detail {
class core;
class feeder;
class segment;
}  // namespace detail

// A buffer to write into. Goes back to the pool if it is not sent.
class loan {
 public:
  loan() = default;
  loan(loan&&) noexcept;
  loan& operator=(loan&&) noexcept;
  ~loan();

  void* data() const { return data_; }
  // Bytes; 0: it was sent or moved from.
  std::size_t capacity() const { return capacity_; }
  explicit operator bool() const { return data_ != nullptr; }
  // Which buffer it is, 0 to options::buffers - 1: for what a program keeps beside each.
  std::uint32_t index() const { return buffer_; }

 private:
  friend class queue;
  friend class detail::core;
  void reset();
  std::shared_ptr<detail::core> core_;
  void* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint32_t buffer_ = 0;
  std::uint32_t generation_ = 0;
};

// A message to read. Its buffer goes back to the pool with it; with on_death::redeliver that acknowledges it. Except for
// a message of receive_parked(): only release() frees its buffer, else it is parked again.
class message {
 public:
  message() = default;
  message(message&&) noexcept;
  message& operator=(message&&) noexcept;
  ~message();

  const void* data() const { return data_; }
  // Bytes.
  std::size_t size() const { return size_; }
  // Its pid. The process may have ended.
  std::uint32_t producer() const { return producer_; }
  // 1, or how many consumers got it, the others having died with it. Of a parked message: how many got it before.
  std::uint32_t deliveries() const { return deliveries_; }
  explicit operator bool() const { return data_ != nullptr; }
  std::uint32_t index() const { return buffer_; }
  // Its place in the order in which all messages of the queue were sent, modulo 2^32. It stays the same when the message
  // is delivered again, parked or requeued.
  std::uint32_t number() const { return position_; }
  // Now rather than at the end. evicted: others had taken us for dead, and may have given the message to another.
  result<void> release();
  // Puts the message aside: nobody receives it until it is requeued. For a consumer that cannot handle it.
  // Errors of this and of requeue(), after which the message is still the caller's: evicted, used_after_fork, corrupt,
  // bad_option (the message is empty, or was released).
  result<void> park();
  // Of a message of receive_parked(), else bad_option: the next receive() gets it, with deliveries() 1. It comes before
  // all that was sent after it.
  result<void> requeue();

 private:
  friend class queue;
  friend class detail::core;
  void end();
  void forget();
  std::shared_ptr<detail::core> core_;
  const void* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint32_t buffer_ = 0, generation_ = 0, position_ = 0, producer_ = 0, deliveries_ = 0;
  bool is_withdrawn_ = false;
};

class queue {
 public:
  queue() = default;
  queue(queue&&) noexcept = default;
  queue& operator=(queue&&) noexcept = default;
  ~queue();

  // Errors: bad_option, no_space, cgroup_limit, fd_limit, system.
  static result<queue> create(const options& wanted);
  // The descriptor stays the caller's. `payload_fd`: of options::readonly_payload, else -1.
  // Errors: not_found, untrusted, abi_mismatch, corrupt, no_participant, fd_limit, system.
  static result<queue> attach(int fd, role as = role::any, int payload_fd = -1);
  static result<queue> attach(const std::string& name, role as = role::any);

  // Of the segment; to be inherited it needs FD_CLOEXEC taken away. -1: this handle is closed.
  int fd() const;
  int payload_fd() const;
  // "/forksight-<32 hex digits>", or empty.
  std::string name() const;
  std::size_t buffer_bytes() const;

  // Errors of all that follow: used_after_fork, role, closed, evicted, corrupt, cancelled.
  // A free buffer; also timeout.
  result<loan> acquire(deadline until = deadline::never());
  // `bytes` of the loan, which is the queue's from then on; on timeout and no_consumer it stays the caller's.
  result<void> send(loan&& from, std::size_t bytes, deadline until = deadline::never());
  // Also timeout, producer_died.
  result<message> receive(deadline until = deadline::never());
  // Errors of acquire() and send(), and too_large. feed::thread: puts a copy on a list without bound and returns at
  // once; what goes wrong later is returned by the next call, whose own message is then not accepted, and by flush()
  // and close_producer().
  result<void> send_copy(const void* data, std::size_t bytes, deadline until = deadline::never());

  // Parked messages: those that killed max_redeliver + 1 consumers, and those that a consumer parked. Any handle may
  // look after them, whatever its role. Errors of both: used_after_fork, cancelled, evicted, corrupt, closed (this
  // handle is empty).
  // The oldest parked message, without waiting. It is no delivery: deliveries() stays what it was. Also timeout: no
  // message is parked. If its holder dies, it is parked again.
  result<message> receive_parked();
  // Requeues all parked messages, as message::requeue() does. Returns how many there were.
  result<std::size_t> requeue();

  // Waits until the feeder has sent, or lost, all that was accepted before. feed::direct: returns at once.
  // undelivered: some of all that this handle has ever accepted was lost. Also timeout, used_after_fork.
  result<delivery> flush(deadline until = deadline::never());
  // This handle sends no more; feed::thread: after what is on its list. When no producer is left, consumers get what is
  // queued, then `closed`. Errors: as of flush(). After a timeout the feeder goes on, and the call may be made again.
  // The end of a handle does the same without an answer, so this is the last call that can tell.
  result<delivery> close_producer(deadline until = deadline::never());
  // feed::thread: how far the feeder is now. In a forked child: nothing.
  delivery delivered() const;
  // Each call that waits on this handle, in any thread, returns `cancelled`; so does every later acquire(), send(),
  // receive() and send_copy(). What the feeder has not sent is lost, as flush() and close_producer() say. Loans and
  // messages go back, and the handle is closed, as ever. Async-signal-safe, as long as no other thread destroys or
  // moves the handle.
  void cancel() const noexcept;
  // Nobody sends any more. drain: what is queued is still received; else every receive() says `closed` at once.
  void shutdown(bool drain);
  // Looks for dead participants now, and gives to the others what they held. Returns how many there were. The blocking
  // calls do it by themselves.
  std::size_t recover();
  snapshot inspect() const;

  // In a forked child: a handle of its own on the same queue. The parent's loans and messages are not the child's.
  result<queue> reattach_after_fork() const;

 private:
  static result<queue> open(result<detail::segment> memory, role as);
  std::shared_ptr<detail::core> core_;
  std::shared_ptr<detail::feeder> feeder_;  // feed::thread
};

}  // namespace forksight::ipc
