// A queue of buffers between processes of one host. A producer writes into a loan, and a consumer reads the message.
// Only an index moves. A process may die at any instruction: the others find out, and get what it held. So nobody
// hangs, and every error says who holds what.
//
// Any number of threads of a process may use one handle at once. After fork() the child needs a handle of its own:
// reattach_after_fork().
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

// A buffer to write into. It goes back to the pool if it is not sent.
class loan {
 public:
  loan() = default;
  loan(loan&&) noexcept;
  loan& operator=(loan&&) noexcept;
  ~loan();

  void* data() const { return data_; }
  // In bytes. 0: the loan was sent or moved from.
  std::size_t capacity() const { return capacity_; }
  explicit operator bool() const { return data_ != nullptr; }
  // Which buffer it is, 0 to options::buffers - 1, for a program that keeps something for each buffer.
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

// A message to read. When this object ends, the buffer goes back to the pool; with on_death::redeliver that
// acknowledges the message. A message of receive_parked() is different: only release() frees its buffer, and the end of
// the object parks it again.
class message {
 public:
  message() = default;
  message(message&&) noexcept;
  message& operator=(message&&) noexcept;
  ~message();

  const void* data() const { return data_; }
  // In bytes.
  std::size_t size() const { return size_; }
  // The pid of the process that sent it, which may have ended.
  std::uint32_t producer() const { return producer_; }
  // How many consumers have got the message, this one included. The others died with it. Of a message of
  // receive_parked(): how many consumers got it before it was parked.
  std::uint32_t deliveries() const { return deliveries_; }
  explicit operator bool() const { return data_ != nullptr; }
  std::uint32_t index() const { return buffer_; }
  // Its place in the order in which all messages of the queue were sent, modulo 2^32. It stays the same when the
  // message is delivered again, parked or requeued.
  std::uint32_t number() const { return position_; }
  // Gives the buffer back now. evicted: other processes had taken this one for dead, and may have given the message to
  // another consumer.
  result<void> release();
  // Puts the message aside: no receive() returns it until it is requeued. This is for a consumer that cannot handle it.
  // Errors of park() and requeue(): evicted, used_after_fork, corrupt, bad_option (the message is empty, or was
  // released). After an error the object is as it was before.
  result<void> park();
  // For a message of receive_parked(), else bad_option. The next receive() gets it, with deliveries() 1, before all
  // messages that are queued.
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
  // The caller keeps the descriptor. `payload_fd`: for a queue with options::readonly_payload, else -1.
  // Errors: not_found, untrusted, abi_mismatch, corrupt, no_participant, fd_limit, system.
  static result<queue> attach(int fd, role as = role::any, int payload_fd = -1);
  static result<queue> attach(const std::string& name, role as = role::any);

  // The descriptor of the segment. It has FD_CLOEXEC, which must be taken away for an exec. -1: this handle is closed.
  int fd() const;
  int payload_fd() const;
  // "/forksight-<32 hex digits>" of a named queue, else empty.
  std::string name() const;
  std::size_t buffer_bytes() const;

  // Errors of acquire(), send(), receive() and send_copy(): used_after_fork, role, closed, evicted, corrupt, cancelled,
  // and those that are named at each of them.
  // Returns a free buffer. Also timeout, no_consumer.
  result<loan> acquire(deadline until = deadline::never());
  // Sends the first `bytes` of the loan, which belongs to the queue from then on. Also too_large, timeout and
  // no_consumer, after which the loan is still the caller's.
  result<void> send(loan&& from, std::size_t bytes, deadline until = deadline::never());
  // Returns the oldest message that no consumer has. Also timeout, producer_died.
  result<message> receive(deadline until = deadline::never());
  // Sends a copy. Errors: as of acquire() and send(). feed::thread: puts the copy on a list without bound and returns
  // at once. If that message cannot be sent later, the next call returns the reason and does not accept its own
  // message; flush() and close_producer() tell it, too.
  result<void> send_copy(const void* data, std::size_t bytes, deadline until = deadline::never());

  // Parked messages are those that killed max_redeliver + 1 consumers, and those that a consumer parked. A handle of
  // any role may make the next two calls. Errors of both: used_after_fork, cancelled, evicted, corrupt, closed (this
  // handle is empty). Takes the oldest parked message, without waiting. It is no delivery: deliveries() stays what it
  // was. If this process dies with the message, the message is parked again. Also timeout: no message is parked.
  result<message> receive_parked();
  // Requeues all parked messages, as message::requeue() does. Returns how many there were.
  result<std::size_t> requeue();

  // Waits until the feeder has sent or lost all that was accepted before the call. feed::direct: returns at once.
  // Errors: undelivered (a message that this handle had accepted at any time was lost), timeout, used_after_fork.
  result<delivery> flush(deadline until = deadline::never());
  // After this call the handle sends no more. feed::thread: what is on its list is sent before. When no producer is
  // left, consumers get what is queued, then `closed`. Errors: as of flush(). After a timeout the feeder goes on, and
  // the call may be made again. The end of a handle does the same, but tells nobody what was lost.
  result<delivery> close_producer(deadline until = deadline::never());
  // feed::thread: how far the feeder is now. In a forked child: nothing.
  delivery delivered() const;
  // Each call that waits on this handle, in any thread, returns `cancelled`; so does every later acquire(), send(),
  // receive() and send_copy(). What the feeder has not sent is lost; flush() and close_producer() say so. Loans and
  // messages can still be given back, and the handle closed. Async-signal-safe, as long as no other thread destroys or
  // moves the handle.
  void cancel() const noexcept;
  // After this nobody can send. drain: what is queued can still be received; else every receive() returns `closed`.
  void shutdown(bool drain);
  // Looks for dead participants now, and gives what they held to the others. Returns how many were dead. Calls that
  // wait do the same.
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
