#include "core.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cancellation.hpp"
#include "failure.hpp"
#include "process.hpp"
#include "turn.hpp"
#include "watcher.hpp"

namespace forksight::ipc::detail {
namespace {

using clock = deadline::clock;
using std::chrono::nanoseconds;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

double seconds_since(std::uint64_t start_ns) { return static_cast<double>(coarse_ns() - start_ns) / 1e9; }

error cancelled() { return failure(errc::cancelled, "queue: cancel() was called on this handle"); }

std::uint32_t roles_of(role as) {
  switch (as) {
    case role::any: break;
    case role::producer: return kProducerRole;
    case role::consumer: return kConsumerRole;
    case role::caretaker: return kCaretakerRole;
  }
  return 0;
}

std::uint32_t pid_in(const shared_word<std::uint64_t>& word) { return static_cast<std::uint32_t>(word.load()); }

// "1 of 3 expected producers has come, and process 812, which made the queue, has died".
std::string describe_lost_creator(std::uint32_t role, const role_status& seen, std::uint32_t creator) {
  return describe_expected(role, seen.expected, seen.ended, 0) + ", and process " + std::to_string(creator) +
         ", which made the queue, has died";
}

// "3 of 3 expected producers have come, 2 of them closed and 1 died".
std::string describe_all_ended(std::uint32_t role, const role_status& seen) {
  return describe_expected(role, seen.expected, seen.ended, 0) + ", " + std::to_string(seen.ended.closed) +
         " of them closed and " + std::to_string(seen.ended.died) + " died";
}

const char* what_lacks(wait_kind kind) {
  switch (kind) {
    case wait_kind::message: return "no message";
    case wait_kind::slot: return "no free slot";
    case wait_kind::buffer: return "no free buffer";
  }
  return "nothing";
}

}  // namespace

fork_mark::fork_mark() {
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, kPage, MADV_WIPEONFORK) != 0) {  // Linux 4.14
    const int why = errno;
    munmap(page, kPage);
    errno = why;
    return;
  }
  page_ = static_cast<volatile unsigned char*>(page);
  *page_ = 1;
}

fork_mark::~fork_mark() {
  if (page_ != nullptr) munmap(const_cast<unsigned char*>(page_), kPage);
}

result<std::shared_ptr<core>> core::open(segment memory, role as) {
  const std::shared_ptr<core> made(new core(std::move(memory)));
  if (!made->mark_.is_ours()) return failed_call(errno, "queue: making a page that fork() wipes");
  made->as_ = as;
  const std::int32_t asked = made->memory_.shape().spin_us;
  made->spin_us_ = asked >= 0 ? static_cast<std::uint32_t>(asked) : (usable_cpus() > 1 ? 20 : 0);
  const std::uint32_t roles = roles_of(as);
  const segment& mapped = made->memory_;
  if (auto joined = made->who_.join(mapped.view(), roles, mapped.fd(), mapped.name()); !joined) return joined.error();
  // gc() removes a named queue only if no process holds an flock() on the queue's file. Until here, the descriptor of
  // the segment holds an flock(). If join() has made a member_lock, the member_lock holds an flock(), too. Then
  // unlock_name() releases the flock() of the descriptor. A forked child does not keep the flock() of the member_lock.
  if (made->who_.has_lock()) made->memory_.unlock_name();
  made->is_joined_ = true;
  // Recovers the slots and buffers of members that died before this one joined.
  made->who_.sweep();
  const std::uint32_t unlink_at = made->memory_.shape().unlink_at;
  if (unlink_at != 0 && as != role::caretaker && made->who_.count_users() >= unlink_at) made->memory_.remove_name();
  return made;
}

core::~core() {
  for (auto& one : watchers_) {
    watcher* const watches = one.exchange(nullptr);
    if (watches != nullptr && !mark_.is_ours()) watches->forget_thread();
    delete watches;
  }
  // In a forked child, the entry in the table of participants belongs to the parent.
  if (is_joined_ && mark_.is_ours()) who_.leave();
}

error core::corrupt_at(const void* word) {
  const std::uint64_t offset = memory_.offset_of(word);
  header& head = *memory_.view().head;
  std::uint64_t none = 0;
  if (head.poisoned.exchange_if(none, offset + 1)) head.poisoned_by.store_relaxed(who_.pid());
  for (const wait_kind kind : {wait_kind::message, wait_kind::slot, wait_kind::buffer}) wake_all(memory_.view(), kind);
  std::uint64_t value = 0;
  __builtin_memcpy(&value, static_cast<const char*>(word), sizeof(std::uint32_t));
  return failure(errc::corrupt,
                 "queue: at offset %llu is a value that no operation writes (0x%llx): another process has overwritten "
                 "the segment; no process can use this queue any more, so create a new one",
                 static_cast<unsigned long long>(offset), static_cast<unsigned long long>(value));
}

error core::evicted() const {
  return failure(errc::evicted,
                 "queue: another participant took process %u for dead, and removed this handle from the queue. The "
                 "loans and messages of this handle went back to the queue, and no data is damaged: attach again",
                 who_.pid());
}

error core::after_step(step_result outcome) {
  return outcome == step_result::corrupt ? corrupt_at(ring::corrupt_at) : evicted();
}

result<void> core::check_usable() const {
  if (!is_ours()) {
    return failure(
        errc::used_after_fork,
        "queue: this handle belongs to the parent process: call reattach_after_fork() in the child, and use the "
        "handle that it returns");
  }
  const header& head = *memory_.view().head;
  if (const std::uint64_t poisoned = head.poisoned.load_relaxed(); poisoned != 0) {
    return failure(errc::corrupt,
                   "queue: process %llu found an invalid value at offset %llu of the segment, and no process can use "
                   "this queue any more: create a new one",
                   static_cast<unsigned long long>(head.poisoned_by.load_relaxed()),
                   static_cast<unsigned long long>(poisoned - 1));
  }
  return {};
}

result<void> core::begin(std::uint32_t wanted) {
  if (auto usable = check_usable(); !usable) return usable;
  if (is_cancelled()) return cancelled();
  // After an eviction, another participant may own the entry of this handle. If this handle then took a message or a
  // buffer, and this process died, nobody could recover that message or buffer.
  if (who_.is_evicted()) return evicted();
  if (as_ == role::caretaker) {
    return failure(errc::role,
                   "queue: this handle has the role caretaker, so it can neither send nor receive: attach another "
                   "handle as a producer or consumer");
  }
  const header& head = *memory_.view().head;
  if (wanted == kProducerRole) {
    if (as_ == role::consumer)
      return failure(
          errc::role,
          "queue: this handle has the role consumer, so it cannot send: attach another handle as a producer");
    if (producer_closed_.load(std::memory_order_relaxed)) {
      return failure(errc::closed,
                     "queue: close_producer() was called on this handle, so it cannot send any more: attach again");
    }
    if ((head.status.load_relaxed() & kShutdown) != 0) return failure(errc::closed, "queue: was shut down");
  } else if (as_ == role::producer) {
    return failure(
        errc::role,
        "queue: this handle has the role producer, so it cannot receive: attach another handle as a consumer");
  }
  who_.take_role(wanted);
  return {};
}

result<void> core::take_role(role as) {
  if (as != role::producer && as != role::consumer) {
    return failure(errc::bad_option, "queue: take_role() got %u: it takes role::producer or role::consumer",
                   static_cast<unsigned>(as));
  }
  return begin(roles_of(as));
}

bool core::may_try(wait_kind kind, std::uint64_t now_ns) const {
  const ring& view = memory_.view();
  if (!does_anyone_wait(view, kind)) return true;
  if (kind != wait_kind::message && memory_.shape().full == static_cast<std::uint8_t>(full::drop_oldest)) return true;
  return has_turn(view, kind, who_.index(), now_ns);
}

// Tries once more before a call returns the error that no consumer is left. After the call's latest attempt, the last
// consumer may have made room and ended. Other errors are final, so nothing is tried.
template <class Try>
step_result core::try_before_error(const error& why, std::uint64_t now_ns, Try attempt) {
  return why.code == errc::no_consumer ? attempt(now_ns) : step_result::none;
}

// The last step of a call that does not wait and has found nothing. Looks for dead members, but at most once in 40 ms,
// as waiting calls do. The text of this call's error `timeout` says only what is lacking. (After a wait, the text of
// this error also says which process holds what.)
template <class Try, class Check>
result<step_result> core::give_up_at_once(wait_kind kind, std::uint64_t now_ns, Try attempt, Check check) {
  if (who_.sweep_if_due(now_ns) != 0 && may_try(kind, now_ns)) {
    if (const step_result outcome = attempt(now_ns); outcome != step_result::none) return outcome;
  }
  if (at_each_look_) at_each_look_();
  // Waiters come first, so this call may have taken nothing although something is available. The waiters may not know
  // yet that it is available, so this call offers it to them.
  (void)pass_on(memory_.view(), kind, now_ns);
  if (auto good = check(); !good) {
    const step_result outcome = try_before_error(good.error(), now_ns, attempt);
    return outcome != step_result::none ? result<step_result>(outcome) : good.error();
  }
  return error{errc::timeout, 0, 0, what_lacks(kind)};
}

template <class Try, class Check>
result<step_result> core::repeat(wait_kind kind, deadline until, shared_word<std::uint64_t>& blocked_ns, Try attempt,
                                 Check check) {
  const std::uint64_t start = coarse_ns();
  step_result outcome = may_try(kind, start) ? attempt(start) : step_result::none;
  if (outcome != step_result::none) return outcome;
  if (until.is_now()) return give_up_at_once(kind, start, attempt, check);
  const ring& view = memory_.view();
  if (spin_us_ != 0 && !does_anyone_wait(view, kind)) {
    std::uint64_t now = monotonic_ns();
    const std::uint64_t spin_end = now + std::uint64_t{spin_us_} * 1000;
    for (std::uint32_t round = 1; !does_anyone_wait(view, kind); ++round) {
      relax();
      outcome = attempt(now);
      if (outcome != step_result::none) return outcome;
      if (round % 16 == 0 && ((now = monotonic_ns()) > spin_end || is_cancelled())) break;
    }
  }
  uncancellable guard;
  turn mine(*this, kind);
  std::uint64_t now = coarse_ns();
  bool has_slept_long = false;
  for (;;) {
    std::uint64_t until_ns = slice_end_ns(view, who_.index(), now);
    const std::uint64_t slice_end = until_ns;
    if (!until.is_never()) {
      // Before a timeout is reported, the slots and buffers of dead members are recovered. So buffers that a dead
      // process holds never make a call fail, even if the deadline of the call is short.
      if (clock::now() >= until.at()) {
        if (who_.sweep() != 0 && may_try(kind, now) && (outcome = attempt(coarse_ns())) != step_result::none) break;
        if (auto good = check(); !good) {
          if ((outcome = try_before_error(good.error(), now, attempt)) != step_result::none) break;
          return good.error();
        }
        if (at_each_look_) at_each_look_();
        blocked_ns.count(coarse_ns() - start);
        return failure(
            errc::timeout, "%s after %.1f s: %s; %s", what_lacks(kind), seconds_since(start),
            describe_buffers(view).c_str(),
            describe_role(view, memory_.shape(), kind == wait_kind::message ? kProducerRole : kConsumerRole).c_str());
      }
      const nanoseconds at = until.at().time_since_epoch();
      until_ns = std::min(until_ns, static_cast<std::uint64_t>(at.count()));
    }
    const std::uint32_t seen = begin_wait(view, kind, who_.index());
    const bool may = has_slept_long || may_try(kind, now);
    if (may && (outcome = attempt(now)) != step_result::none) break;
    const auto look_again_ns = check();
    if (!look_again_ns) {
      if ((outcome = try_before_error(look_again_ns.error(), now, attempt)) != step_result::none) break;
      return look_again_ns.error();
    }
    until_ns = std::min(until_ns, look_again_ns.value());
    // This thread has already read its futex (`seen`). cancel() sets the flag first, and changes the futex afterwards.
    // So either this thread sees the flag, or the changed futex keeps it from sleeping.
    if (cancelled_.load()) return cancelled();
    if (!may) {
      // Offers to the other waiters what is available. An offer ends after kTurnNs. This thread looks again when all
      // these offers have ended.
      if (const std::uint64_t over = pass_on(view, kind, now); over != 0) until_ns = std::min(until_ns, over + kTickNs);
    }
    // A slice (waiting.hpp) is the longest time of one sleep. The first slices of a wait may be shorter than kLookNs.
    // After a sleep of at least kLookNs that lasted until the end of a slice, this thread makes one attempt to take
    // something. It makes this attempt even if has_turn() says that other waiters come first.
    has_slept_long =
        sleep(view, kind, who_.index(), seen, until_ns) && until_ns == slice_end && slice_end - now >= kLookNs;
    guard.let_cancel();
    now = coarse_ns();
    // Looks for dead members after every sleep, not only after full slices, because signals may end each sleep early.
    if (who_.sweep_if_due(now) != 0) now = coarse_ns();
    if (at_each_look_) at_each_look_();
    if (who_.is_evicted()) return evicted();
    if (auto usable = check_usable(); !usable) return usable.error();
  }
  mine.was_served();
  if (now != start) blocked_ns.count(now - start);
  return outcome;
}

// Drops the oldest message. If a slot is needed, drops the oldest queued message: a returned message (layout.hpp)
// occupies no slot.
bool core::discard_oldest(wait_kind for_what) {
  const ring& view = memory_.view();
  taken oldest;
  const step_result got = for_what == wait_kind::slot
                              ? view.take_queued(who_.me(), who_.pid(), coarse_ns(), oldest)
                              : view.take(who_.me(), who_.pid(), coarse_ns(), take_hint_, oldest);
  if (got != step_result::done) return false;
  if (view.release(who_.me(), oldest, coarse_ns()) != step_result::done) return false;
  view.head->dropped.count(1);
  return true;
}

role_status core::status_of(std::uint32_t role) {
  const geometry& shape = memory_.shape();
  return role_tracker_.of(role, who_, memory_.view(), shape, shape.grace_ms != 0 ? monotonic_ns() : 0);
}

// If no consumer is left and none is expected, a call without a deadline must not wait forever. A call with a deadline
// waits until its deadline, because a consumer may still attach.
result<std::uint64_t> core::check_consumers(deadline until) {
  const header& head = *memory_.view().head;
  if ((head.status.load() & kShutdown) != 0) return failure(errc::closed, "queue: was shut down");
  const role_status seen = status_of(kConsumerRole);
  if (seen.what == role_status::kind::open) return seen.look_again_ns;
  if (!until.is_never() && !until.is_now() && clock::now() < until.at()) return kNever;
  const std::string left = describe_buffers(memory_.view());
  if (seen.what == role_status::kind::creator_died) {
    error why = failure(errc::no_consumer, "queue: no consumer is attached: %s. The queue is full: %s",
                        describe_lost_creator(kConsumerRole, seen, pid_in(head.creator)).c_str(), left.c_str());
    why.pid = pid_in(head.creator);
    return why;
  }
  if (seen.expected == 0) {
    return failure(errc::no_consumer, "queue: no consumer is left, and the queue is full: %s", left.c_str());
  }
  return failure(errc::no_consumer, "queue: no consumer is left: %s. The queue is full: %s",
                 describe_all_ended(kConsumerRole, seen).c_str(), left.c_str());
}

result<loan> core::acquire(const std::shared_ptr<core>& self, deadline until) {
  auto got = acquire_buffer(self, until);
  tell_watcher(wait_kind::buffer, got ? nullptr : &got.error());
  return got;
}

result<loan> core::acquire_buffer(const std::shared_ptr<core>& self, deadline until) {
  if (auto good = begin(kProducerRole); !good) return good.error();
  const ring& view = memory_.view();
  if (!memory_.can_write_payload()) {
    return failure(errc::role,
                   "queue: it was created with readonly_payload, so only its creator can write into the buffers: this "
                   "handle cannot send");
  }
  const full mode = static_cast<full>(memory_.shape().full);
  claimed got;
  const auto attempt = [&](std::uint64_t now_ns) {
    step_result outcome = view.claim(who_.me(), now_ns, claim_hint_, got);
    while (outcome == step_result::none && mode == full::drop_oldest && discard_oldest(wait_kind::buffer)) {
      outcome = view.claim(who_.me(), now_ns, claim_hint_, got);
    }
    return outcome;
  };
  if (mode == full::fail) until = deadline::now();
  const auto outcome =
      repeat(wait_kind::buffer, until, view.head->blocked_send_ns, attempt, [&] { return check_consumers(until); });
  if (!outcome.has_value()) return outcome.error();
  loan made;
  made.core_ = self;
  made.data_ = memory_.payload(got.buffer);
  __builtin_prefetch(made.data_, 1);  // the memory is probably in the cache of the consumer that used it last
  made.capacity_ = memory_.shape().buffer_bytes;
  made.buffer_ = got.buffer;
  made.generation_ = got.generation;
  return made;
}

result<void> core::send(loan& from, std::size_t bytes, deadline until) {
  if (auto good = begin(kProducerRole); !good) return good.error();
  if (from.core_.get() != this)
    return failure(errc::bad_option,
                   "queue: the loan was already sent, or belongs to another queue: acquire() gives a new loan");
  if (bytes > from.capacity_) {
    return failure(errc::too_large,
                   "queue: the message has %zu bytes, but a buffer has only %zu: send smaller messages, or create the "
                   "queue with a larger buffer_bytes",
                   bytes, from.capacity_);
  }
  const ring& view = memory_.view();
  const full mode = static_cast<full>(memory_.shape().full);
  const claimed buffer{from.buffer_, from.generation_};
  const auto attempt = [&](std::uint64_t now_ns) {
    step_result outcome = view.publish(who_.me(), who_.pid(), buffer, bytes, now_ns);
    while (outcome == step_result::none && mode == full::drop_oldest && discard_oldest(wait_kind::slot)) {
      outcome = view.publish(who_.me(), who_.pid(), buffer, bytes, now_ns);
    }
    return outcome;
  };
  if (mode == full::fail) until = deadline::now();
  const auto outcome =
      repeat(wait_kind::slot, until, view.head->blocked_send_ns, attempt, [&] { return check_consumers(until); });
  if (!outcome.has_value()) return outcome.error();
  // The message is sent or lost. In both cases, the caller no longer has the loan.
  from.data_ = nullptr;
  from.capacity_ = 0;
  const std::shared_ptr<core> kept = std::move(from.core_);
  if (outcome.value() != step_result::done) return after_step(outcome.value());
  wake_one(view, wait_kind::message);
  who_.entry().sent.count_own(1);
  return {};
}

// Checks whether a consumer that found nothing may sleep. It first checks whether producers are left, and then whether
// messages are queued. In the other order, the check could miss a message that the last producer sent just before it
// ended.
result<std::uint64_t> core::check_can_receive() {
  const ring& view = memory_.view();
  const header& head = *view.head;
  const std::uint32_t status = head.status.load();
  if ((status & kAborted) != 0) return failure(errc::closed, "queue: was shut down");
  const bool was_shut_down = (status & kShutdown) != 0;
  role_status seen;
  if (!was_shut_down) {
    seen = status_of(kProducerRole);
    if (seen.what == role_status::kind::open) return seen.look_again_ns;
  }
  if (!view.is_drained(who_.me())) return kNever;
  if (was_shut_down) return failure(errc::closed, "queue: was shut down, and is drained");
  if (seen.what == role_status::kind::creator_died) {
    error why = failure(errc::producer_died, "queue: no producer is attached: %s. Nothing is queued",
                        describe_lost_creator(kProducerRole, seen, pid_in(head.creator)).c_str());
    why.pid = pid_in(head.creator);
    return why;
  }
  if (seen.expected != 0) {
    const bool all_closed = seen.ended.closed >= seen.expected;
    error why =
        failure(all_closed ? errc::closed : errc::producer_died, "queue: no producer is left: %s. Nothing is queued",
                describe_all_ended(kProducerRole, seen).c_str());
    if (all_closed) return why;
    why.pid = pid_in(head.last_died[index_of(kProducerRole)]);
    why.text += ". The producer that died last was process " + std::to_string(why.pid);
    return why;
  }
  const std::uint64_t last = head.last_producer.load();
  if ((last & kDied) == 0) return failure(errc::closed, "queue: no producer is left, and nothing is queued");
  const auto pid = static_cast<std::uint32_t>(last);
  error why = failure(
      errc::producer_died,
      "queue: no producer is left, and nothing is queued. The last one, process %u, died without closing its handle",
      pid);
  why.pid = pid;
  return why;
}

result<message> core::receive(const std::shared_ptr<core>& self, deadline until) {
  auto got = receive_message(self, until);
  tell_watcher(wait_kind::message, got ? nullptr : &got.error());
  return got;
}

result<message> core::receive_message(const std::shared_ptr<core>& self, deadline until) {
  if (auto good = begin(kConsumerRole); !good) return good.error();
  const ring& view = memory_.view();
  taken got;
  bool is_first = true, waited = false;
  const auto attempt = [&](std::uint64_t now_ns) {
    waited = !std::exchange(is_first, false);
    if ((view.head->status.load_relaxed() & kAborted) != 0) return step_result::none;
    return view.take(who_.me(), who_.pid(), now_ns, take_hint_, got);
  };
  const auto outcome =
      repeat(wait_kind::message, until, view.head->blocked_receive_ns, attempt, [&] { return check_can_receive(); });
  if (!outcome.has_value()) return outcome.error();
  if (outcome.value() != step_result::done) return after_step(outcome.value());
  wake_one(view, wait_kind::slot);
  who_.entry().received.count_own(1);
  // The consumer updates the high-water mark. If the producer updated the mark, the producer would need the consumers'
  // cache line, which costs a cache miss for each message. A consumer that waited does not update the mark, because the
  // queue was empty before.
  if (!waited) {
    const std::uint32_t length = view.head->tail.peek() - view.head->head.peek() + 1;
    if (length <= view.slot_count) view.head->high_water.raise_to(length);
  }
  return message_of(self, got);
}

message core::message_of(const std::shared_ptr<core>& self, const taken& got) const {
  message made;
  made.core_ = self;
  made.data_ = memory_.payload(got.buffer);
  made.size_ = got.length;
  made.buffer_ = got.buffer;
  made.generation_ = got.generation;
  made.position_ = got.position;
  made.producer_ = got.producer;
  made.deliveries_ = got.deliveries;
  made.is_withdrawn_ = got.is_withdrawn;
  return made;
}

void core::give_back(loan& from) {
  if (from.data_ == nullptr || !is_ours()) return;
  if (memory_.view().give_back(who_.me(), {from.buffer_, from.generation_}, coarse_ns()) == step_result::done) {
    wake_one(memory_.view(), wait_kind::buffer);
  }
}

taken core::taken_of(const message& from) {
  return {from.position_, from.buffer_, from.generation_, 0, 0, 0, from.is_withdrawn_};
}

result<void> core::release(message& from) {
  if (!is_ours()) return check_usable();
  const ring& view = memory_.view();
  if (view.release(who_.me(), taken_of(from), coarse_ns()) != step_result::done) return evicted();
  wake_one(view, wait_kind::buffer);
  wake_waiters_for_the_end();
  return {};
}

// With on_death::redeliver, consumers also wait for messages that others hold. When the last of these messages is
// released and no producer is left, no message can come any more, so the waiting consumers are woken.
void core::wake_waiters_for_the_end() {
  const ring& view = memory_.view();
  if (!view.redelivers) return;
  const header& head = *view.head;
  const bool may_end = head.last_producer.load_relaxed() != 0 || head.status.load_relaxed() != 0 ||
                       (head.creator.load_relaxed() & kDied) != 0;
  if (!may_end) return;
  if ((view.head->status.load() & kShutdown) != 0 || !who_.has(kProducerRole)) wake_all(view, wait_kind::message);
}

// A handle of any role may receive and requeue parked messages, so no role is checked.
result<void> core::begin_caretaking() {
  if (auto usable = check_usable(); !usable) return usable;
  if (is_cancelled()) return cancelled();
  // After an eviction, another participant may own the entry of this handle. If this handle then took a message, and
  // this process died, nobody could recover the message.
  if (who_.is_evicted()) return evicted();
  return {};
}

result<message> core::receive_parked(const std::shared_ptr<core>& self) {
  if (auto good = begin_caretaking(); !good) return good.error();
  const ring& view = memory_.view();
  taken got;
  const auto attempt = [&] { return view.withdraw(who_.me(), coarse_ns(), got); };
  step_result outcome = attempt();
  // The sweep parks messages again if the processes that had withdrawn them are dead.
  if (outcome == step_result::none && who_.sweep() != 0) outcome = attempt();
  if (outcome == step_result::none) return failure(errc::timeout, "queue: no message is parked");
  if (outcome != step_result::done) return after_step(outcome);
  if (who_.is_evicted()) {
    (void)view.park(who_.me(), who_.pid(), got, coarse_ns());
    return evicted();
  }
  return message_of(self, got);
}

result<void> core::park(message& from) {
  if (auto usable = check_usable(); !usable) return usable;
  const ring& view = memory_.view();
  if (view.park(who_.me(), who_.pid(), taken_of(from), coarse_ns()) != step_result::done) return evicted();
  if (!from.is_withdrawn_) view.head->parked.count(1);
  wake_waiters_for_the_end();
  return {};
}

result<void> core::requeue(message& from) {
  if (auto usable = check_usable(); !usable) return usable;
  const ring& view = memory_.view();
  if (view.requeue(who_.me(), taken_of(from), coarse_ns()) != step_result::done) return evicted();
  wake_one(view, wait_kind::message);
  return {};
}

step_result core::requeue_withdrawn(const taken& got) {
  const ring& view = memory_.view();
  if (!who_.is_evicted()) return view.requeue(who_.me(), got, coarse_ns());
  (void)view.park(who_.me(), who_.pid(), got, coarse_ns());
  return step_result::evicted;
}

result<std::size_t> core::requeue_all() {
  if (auto good = begin_caretaking(); !good) return good.error();
  const ring& view = memory_.view();
  who_.sweep();
  std::size_t count = 0;
  step_result outcome = step_result::none;
  for (std::uint32_t i = 0; i < view.buffer_count; ++i) {
    taken got;
    outcome = view.withdraw_from(i, who_.me(), coarse_ns(), got);
    if (outcome == step_result::none) continue;
    if (outcome == step_result::done) outcome = requeue_withdrawn(got);
    if (outcome != step_result::done) break;
    ++count;
  }
  if (count != 0) wake_all(view, wait_kind::message);
  if (outcome == step_result::evicted || outcome == step_result::corrupt) return after_step(outcome);
  return count;
}

void core::close_producer() {
  if (!is_ours()) return;
  producer_closed_ = true;
  who_.drop_role(kProducerRole);
}

void core::shutdown(bool drain) {
  if (!is_ours()) return;
  const ring& view = memory_.view();
  (void)view.head->status.fetch_or(drain ? kShutdown : kShutdown | kAborted);
  for (const wait_kind kind : {wait_kind::message, wait_kind::slot, wait_kind::buffer}) wake_all(view, kind);
}

void core::cancel() noexcept {
  cancelled_ = true;
  // In a forked child, the participant's entry belongs to the parent.
  if (is_ours()) wake_participant(memory_.view(), who_.index());
}

std::size_t core::recover() { return is_ours() ? who_.sweep() : 0; }

}  // namespace forksight::ipc::detail
