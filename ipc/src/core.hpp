// One handle of a queue: its mapping of the segment, its entry in the table of participants, and its calls that may
// block.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>

#include "forksight/ipc/queue.hpp"
#include "members.hpp"
#include "role_status.hpp"
#include "segment.hpp"
#include "waiting.hpp"

namespace forksight::ipc::detail {

// Distinguishes a forked child from its parent without a system call: the object has a page with MADV_WIPEONFORK, which
// is filled with zeros in the child.
class fork_mark {
 public:
  fork_mark();
  fork_mark(const fork_mark&) = delete;
  fork_mark& operator=(const fork_mark&) = delete;
  ~fork_mark();
  bool is_ours() const { return page_ != nullptr && *page_ == 1; }

 private:
  volatile unsigned char* page_ = nullptr;
};

class watcher;

class core {
 public:
  static result<std::shared_ptr<core>> open(segment memory, role as);
  ~core();

  // Sets the function `look`. Waiting calls execute it whenever they look for dead members: after each sleep, which
  // lasts at most 3 s, and before they return `timeout`. `look` must be set before the first call that waits.
  void at_each_look(std::function<void()> look) { at_each_look_ = std::move(look); }
  // In the calls below, `self` is this object. A returned loan or message keeps this object alive.
  result<loan> acquire(const std::shared_ptr<core>& self, deadline until);
  result<void> send(loan& from, std::size_t bytes, deadline until);
  result<message> receive(const std::shared_ptr<core>& self, deadline until);
  // A descriptor for an event loop (watcher.hpp). It is readable while a call that does not wait would return a result,
  // or an error other than `timeout`. `kind`: message (the call is receive()) or buffer (the call is acquire()). The
  // descriptor belongs to this handle.
  result<int> watch(wait_kind kind);
  void give_back(loan& from);
  result<void> release(message& from);
  // Takes the oldest parked message. timeout: no message is parked.
  result<message> receive_parked(const std::shared_ptr<core>& self);
  // park() and requeue() do not change the object `from`. If they succeed, the caller must empty the object, because it
  // no longer has the message.
  result<void> park(message& from);
  result<void> requeue(message& from);
  // Requeues all messages that are parked now. Returns how many there were.
  result<std::size_t> requeue_all();

  void close_producer();
  void shutdown(bool drain);
  void cancel() noexcept;  // async-signal-safe
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  std::size_t recover();
  // Takes the role now. It must be producer or consumer.
  result<void> take_role(role as);
  // Calls segment::take_name(). No other thread may use this handle yet.
  result<bool> publish(const std::string& name) { return memory_.take_name(name); }

  const segment& memory() const { return memory_; }
  const members& who() const { return who_; }
  role attached_as() const { return as_; }
  bool is_ours() const { return mark_.is_ours(); }
  result<void> check_usable() const;

 private:
  explicit core(segment memory) : memory_(std::move(memory)) {}
  friend class watcher;
  result<loan> acquire_buffer(const std::shared_ptr<core>& self, deadline until);
  result<message> receive_message(const std::shared_ptr<core>& self, deadline until);
  // Tells the watcher the result of a call. `why`: the error of the call; null: the call succeeded.
  void tell_watcher(wait_kind kind, const error* why);
  // True if a message or a buffer (`kind`) is available, even if another waiter must be served first.
  bool is_available(wait_kind kind);
  // True if a call would return an error other than `timeout`. Otherwise `look_again_ns` gets the result of
  // check_can_receive() or check_consumers().
  bool would_fail(wait_kind kind, std::uint64_t& look_again_ns);
  bool wait_until_ready(wait_kind kind, watcher& by, std::uint32_t& asked);
  result<void> begin(std::uint32_t role);
  bool discard_oldest(wait_kind for_what);
  result<void> begin_caretaking();
  step_result requeue_withdrawn(const taken& got);
  void wake_waiters_for_the_end();
  static taken taken_of(const message& from);
  message message_of(const std::shared_ptr<core>& self, const taken& got) const;
  error corrupt_at(const void* word);
  error evicted() const;
  error after_step(step_result outcome);
  // Before a call sleeps, these functions check whether a message can still arrive, or a slot or buffer can still
  // become free. They return the time on CLOCK_MONOTONIC at which the call must check again, even if it is not woken
  // before.
  result<std::uint64_t> check_can_receive();
  result<std::uint64_t> check_consumers(deadline until);

  // One wait of a thread: from the moment at which the thread becomes a waiter until the thread is served or gives up.
  class turn;
  // Calls `attempt`, spins, sleeps and calls `attempt` again, until it succeeds or the deadline has passed. Calls
  // `check` before each sleep. Does not call `attempt` while other participants must be served first (may_try()),
  // except after a sleep of at least 50 ms.
  template <class Try, class Check>
  result<step_result> repeat(wait_kind kind, deadline until, shared_word<std::uint64_t>& blocked_ns, Try attempt,
                             Check check);
  template <class Try, class Check>
  result<step_result> give_up_at_once(wait_kind kind, std::uint64_t now_ns, Try attempt, Check check);
  template <class Try>
  static step_result try_before_error(const error& why, std::uint64_t now_ns, Try attempt);
  // True if this thread may try to take something now: no participant waits, or it is the turn of this thread's
  // participant (has_turn()). With full::drop_oldest, a producer never waits.
  bool may_try(wait_kind kind, std::uint64_t now_ns) const;

  segment memory_;
  fork_mark mark_;
  members who_;
  role as_ = role::any;
  std::atomic<bool> producer_closed_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> is_joined_{false};
  std::function<void()> at_each_look_;
  std::uint32_t spin_us_ = 0;
  role_status status_of(std::uint32_t role);
  role_tracker role_tracker_;
  claim_hint claim_hint_;
  take_hint take_hint_;
  std::array<std::atomic<std::uint32_t>, kWaitKinds> threads_waiting_{};
  std::array<std::atomic<watcher*>, kWaitKinds> watchers_{};
};

// Calls core::at_each_look() of the handle. This is for a library that keeps state of its own for each member of a
// queue.
void at_each_look(const queue& of, std::function<void()> look);

// Says who holds the buffers, for example "6 HELD by pid 812 (alive, state T, 41 s), 2 QUEUED, 0 LOANED".
std::string describe_buffers(const ring& of);
// Names the members that have the role, for example "3 consumers: pid 812 (alive, state T), ...", or "no consumer".
std::string describe_participants(const ring& of, std::uint32_t role);
// The text of describe_participants(). If the queue expects a number of members of that role, the text also says how
// many are expected and how many have come.
std::string describe_role(const ring& of, const geometry& shape, std::uint32_t role);
snapshot take_snapshot(const ring& of, const geometry& shape, const std::string& name);

}  // namespace forksight::ipc::detail
