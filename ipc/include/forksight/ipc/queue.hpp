// A queue of messages in shared memory, between processes of one host. The shared memory has buffers, and each message
// is in one buffer. A producer acquires a free buffer (a loan), writes a message into the loan, and sends the loan. A
// consumer receives the message and reads it in the same buffer. So the bytes are not copied: only the index of the
// buffer goes through the queue. A process may die at any instruction. The other processes notice the death, and get
// the buffers that the dead process held. So no process hangs because of a death. If a call has waited until its
// deadline, the text of its error says which process holds which buffers.
//
// Any number of threads of a process may use one handle (an object of class queue) at once. After fork() the child
// needs a handle of its own: reattach_after_fork().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "forksight/ipc/delivery.hpp"
#include "forksight/ipc/options.hpp"
#include "forksight/ipc/result.hpp"
#include "forksight/ipc/snapshot.hpp"

namespace forksight::ipc {
class queue;
namespace detail {
class core;
class feeder;
class segment;
void at_each_look(const queue& of, std::function<void()> look);
error not_whole(std::size_t message_bytes, std::size_t element_bytes);
}  // namespace detail

// Each buffer begins at a multiple of this number of bytes.
constexpr std::size_t kBufferAlignment = 64;

// The types that the elements of a buffer may have. A pointer, or an object that owns memory, has no meaning in another
// process.
template <class T>
concept payload = std::is_trivially_copyable_v<T> && alignof(T) <= kBufferAlignment && !std::is_pointer_v<T>;

// A buffer to write into. If the loan is not sent, the destructor gives the buffer back to the queue.
class loan {
 public:
  loan() = default;
  loan(loan&&) noexcept;
  loan& operator=(loan&&) noexcept;
  ~loan();

  void* data() const { return data_; }
  // The size of the buffer in bytes. 0: the loan was sent or moved from.
  std::size_t capacity() const { return capacity_; }
  // The buffer as an array of T, with as many elements as fit. Empty: the loan was sent or moved from.
  template <payload T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), capacity_ / sizeof(T)};
  }
  explicit operator bool() const { return data_ != nullptr; }
  // The number of the buffer, 0 to options::buffers - 1, for a program that stores something for each buffer.
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

// A message to read. When this object is destroyed, its buffer becomes free. This also acknowledges the message: even
// with on_death::redeliver, no other consumer gets it any more. A message of receive_parked() is different: only
// release() frees its buffer. If the object is destroyed without release(), the message is parked again.
class message {
 public:
  message() = default;
  message(message&&) noexcept;
  message& operator=(message&&) noexcept;
  ~message();

  const void* data() const { return data_; }
  // In bytes.
  std::size_t size() const { return size_; }
  // The message as an array of T. bad_option: the size of the message is not a multiple of sizeof(T). Nothing checks
  // whether the sender has written elements of that type.
  template <payload T>
  result<std::span<const T>> as() const {
    if (size_ % sizeof(T) != 0) return detail::not_whole(size_, sizeof(T));
    return std::span<const T>(static_cast<const T*>(data_), size_ / sizeof(T));
  }
  // The pid of the process that sent the message. That process may have ended.
  std::uint32_t producer() const { return producer_; }
  // How many consumers have received the message, this one included. The earlier consumers died while they held the
  // message. For a message of receive_parked(): how many consumers received it before it was parked.
  std::uint32_t deliveries() const { return deliveries_; }
  explicit operator bool() const { return data_ != nullptr; }
  std::uint32_t index() const { return buffer_; }
  // The position of the message in the order in which all messages of the queue were sent, modulo 2^32. It stays the
  // same when the message is delivered again, parked or requeued.
  std::uint32_t number() const { return position_; }
  // Frees the buffer now. evicted: other processes took this process for dead, and may have given the message to
  // another consumer.
  result<void> release();
  // Parks the message: receive() does not return the message until it is requeued. A consumer calls this if it cannot
  // handle the message. Errors of park() and requeue(): evicted, used_after_fork, corrupt, bad_option (the message is
  // empty, or was released). After evicted and corrupt, the object is empty. After any other error, the object still
  // has the message.
  result<void> park();
  // Only for a message of receive_parked(); for another message, the error is bad_option. The next receive() gets the
  // message before all queued messages. deliveries() is then 1.
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
  // Attaches to the queue of that name, or creates it if there is none. Any number of processes may call this at the
  // same time, in any order: exactly one creates the queue. No process sees an incomplete queue. If the creator is
  // killed meanwhile, another process can still create the queue. `name`: 1 to 64 letters, digits, '.', '_' and '-'. It
  // does not begin with '.', and is not 32 hex digits. The file is /dev/shm/forksight-NAME. wanted.backing is ignored:
  // the queue is of strategy::named. If the queue exists, it must have the same options. Only spin_us and `as` may
  // differ. If all its users have ended, its messages are still there. Errors: those of create() and of attach().
  // bad_option: the name is invalid, or an option differs. untrusted: also if a file with that name is not a queue;
  // such a file is never removed or changed.
  static result<queue> open_or_create(const std::string& name, const options& wanted);
  // Attaches to the queue behind the descriptor `fd`. The caller keeps the descriptor. `payload_fd`: the payload's
  // descriptor, for a queue with options::readonly_payload; else -1. Errors: not_found, untrusted, abi_mismatch,
  // corrupt, no_participant, bad_option (the name or `payload_fd` is wrong), fd_limit, system.
  static result<queue> attach(int fd, role as = role::any, int payload_fd = -1);
  static result<queue> attach(const std::string& name, role as = role::any);

  // The descriptor of the segment. It has FD_CLOEXEC. Clear this flag if a program that is started by exec needs the
  // descriptor. -1: this handle is closed.
  int fd() const;
  int payload_fd() const;
  // The name of a named queue, "/forksight-<32 hex digits>" or "/forksight-NAME". Empty: the queue has no name.
  std::string name() const;
  std::size_t buffer_bytes() const;

  // Errors of acquire(), send(), receive() and send_copy(): used_after_fork, role, closed, evicted, corrupt, cancelled,
  // and the errors that are named at each function.
  //
  // Returns a free buffer. Further errors: timeout, no_consumer.
  result<loan> acquire(deadline until = deadline::never());
  // Sends the first `bytes` bytes of the loan. Afterwards the loan is empty. Further errors: too_large, timeout,
  // no_consumer, bad_option (the loan belongs to another queue, or was sent). After these errors, the caller still has
  // the loan.
  result<void> send(loan&& from, std::size_t bytes, deadline until = deadline::never());
  // Returns the oldest message that no consumer has. Further errors: timeout, producer_died.
  result<message> receive(deadline until = deadline::never());
  // Makes the handle a producer or a consumer now. Without this call, its first acquire() or receive() does that.
  // Returns the errors of those calls, and bad_option if the role is neither producer nor consumer.
  result<void> take_role(role as);
  // Sends a copy. The errors are those of acquire() and send(). With feed::thread, send_copy() puts the copy on an
  // unbounded list and returns at once: the message is accepted. A thread, the feeder, sends the accepted messages
  // later. If the feeder cannot send a message, the message is lost. Then the next send_copy() returns the reason, and
  // does not accept the message of that call. flush() and close_producer() also return the reason.
  result<void> send_copy(const void* data, std::size_t bytes, deadline until = deadline::never());

  // Descriptors for event loops: poll(), epoll, asyncio. The descriptor of message_fd() is readable (POLLIN) while a
  // receive() with deadline::now() would return a message or an error other than `timeout`. The descriptor of room_fd()
  // is readable while an acquire() with deadline::now() would return a buffer or an error other than `timeout`. A call
  // that returns `timeout` makes its descriptor unreadable again. Do not read or write the descriptors. The first call
  // of each of these functions starts a thread, and makes the handle a consumer or a producer. The descriptors belong
  // to the handle, and are closed with it. Errors: those of take_role(), fd_limit, system.
  result<int> message_fd();
  result<int> room_fd();

  // Parked messages are those that killed max_redeliver + 1 consumers, and those that a consumer parked. A handle of
  // any role may call the next two functions. Errors of both: used_after_fork, cancelled, evicted, corrupt, closed
  // (this handle is empty).
  //
  // Takes the oldest parked message, without waiting. This does not count as a delivery: deliveries() does not change.
  // If this process dies while it has the message, the message is parked again. Further error: timeout (no message is
  // parked).
  result<message> receive_parked();
  // Requeues all parked messages, as message::requeue() does. Returns how many there were.
  result<std::size_t> requeue();

  // Waits until the feeder has sent or lost all messages that were accepted before the call. feed::direct: returns at
  // once. Errors: undelivered (of all messages that this handle has ever accepted, at least one was lost), timeout,
  // used_after_fork.
  result<delivery> flush(deadline until = deadline::never());
  // After this call, the handle cannot send. With feed::thread, the call first waits until the feeder has sent or lost
  // the messages on the handle's list. When no producer is left, consumers first receive the queued messages, and then
  // the error `closed`. The errors are those of flush(). After a timeout the feeder goes on, and the call may be
  // repeated. The destructor of a handle also waits for the feeder, but cannot report which messages were lost.
  result<delivery> close_producer(deadline until = deadline::never());
  // How many of the accepted messages the feeder has sent, has lost, and still has. All numbers are 0 without
  // feed::thread and in a forked child.
  delivery delivered() const;
  // Makes each call that waits on this handle, in any thread, return `cancelled`. Every later acquire(), send(),
  // receive() and send_copy() also returns `cancelled`. Messages that the feeder has not sent are lost, and flush() and
  // close_producer() report that. Loans and messages can still be given back, and the handle can be closed.
  // Async-signal-safe, as long as no other thread destroys or moves the handle.
  void cancel() const noexcept;
  // After this call, no handle of the queue can send. drain: queued messages can still be received. Without `drain`,
  // every receive() returns `closed`.
  void shutdown(bool drain);
  // Looks for dead participants (attached handles) now, and gives the buffers that they held to the others. Returns how
  // many dead participants were found. Calls that wait also do this.
  std::size_t recover();
  snapshot inspect() const;

  // In a forked child: makes a new handle for the same queue. The child cannot use the loans and messages of the
  // parent.
  result<queue> reattach_after_fork() const;

 private:
  friend void detail::at_each_look(const queue&, std::function<void()>);
  static result<queue> open(result<detail::segment> memory, role as);
  std::shared_ptr<detail::core> core_;
  std::shared_ptr<detail::feeder> feeder_;  // feed::thread
};

}  // namespace forksight::ipc
