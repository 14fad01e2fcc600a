#include "watcher.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <new>
#include <system_error>
#include <utility>

#include "cancellation.hpp"
#include "failure.hpp"
#include "process.hpp"
#include "turn.hpp"

namespace forksight::ipc::detail {

result<std::unique_ptr<watcher>> watcher::start(core& of, wait_kind kind) {
  descriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return failed_call(errno, "queue: creating an eventfd");
  std::unique_ptr<watcher> made(new watcher(of, kind, std::move(event)));
  // The new thread inherits this mask, so that signals of the program are handled only by the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  // On Linux, sigprocmask() sets the mask of the calling thread, as pthread_sigmask() does. In glibc 2.28, libc does
  // not export pthread_sigmask().
  if (::sigprocmask(SIG_SETMASK, &all, &before) != 0) return failed_call(errno, "queue: blocking signals");
  int why = 0;
  try {
    made->thread_ = std::thread([one = made.get()] { one->run(); });
  } catch (const std::system_error& error) {
    why = error.code().value();
  } catch (const std::bad_alloc&) {
    why = ENOMEM;
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (why != 0) return failed_call(why, "queue: starting the thread that serves its descriptor");
  return made;
}

watcher::~watcher() {
  if (!thread_.joinable()) return;
  is_over_ = true;
  ask();
  wake_participant(core_.memory_.view(), core_.who_.index());
  const uncancellable guard;  // the thread ends soon, because it waits for nothing else
  thread_.join();
}

void watcher::forget_thread() { new (&thread_) std::thread; }

void watcher::ask() {
  (void)asked_.fetch_add(1);
  syscall(SYS_futex, &asked_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void watcher::look_again() {
  std::uint64_t count = 0;
  // read() is a cancellation point, but the caller may have a message, which must not be lost.
  const uncancellable guard;
  // If the descriptor was not readable, the thread is still looking, and need not be asked.
  if (read(event_.get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count)) ask();
}

void watcher::signal() {
  const std::uint64_t one = 1;
  (void)!write(event_.get(), &one, sizeof one);
}

void watcher::wait_until_asked(std::uint32_t seen, std::uint64_t ns) {
  const std::uint64_t end_ns = monotonic_ns() + ns;
  while (asked_.load() == seen) {
    const timespec end{static_cast<time_t>(end_ns / 1'000'000'000), static_cast<long>(end_ns % 1'000'000'000)};
    const long woken = syscall(SYS_futex, &asked_, FUTEX_WAIT_BITSET_PRIVATE, seen, ns != 0 ? &end : nullptr, nullptr,
                               FUTEX_BITSET_MATCH_ANY);
    if (woken != 0 && errno == ETIMEDOUT) return;
  }
}

void watcher::run() {
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "poll-%08x", static_cast<unsigned>(core_.memory_.shape().id[0] >> 32));
  pthread_setname_np(pthread_self(), name.data());
  while (!is_over()) {
    std::uint32_t seen = 0;
    {
      const core::turn mine(core_, kind_);
      if (!core_.wait_until_ready(kind_, *this, seen)) return;
      signal();
      wait_until_asked(seen, kTurnNs);
    }
    // If the program has not made its call in time, other members are served now.
    wait_until_asked(seen, 0);
  }
}

result<int> core::watch(wait_kind kind) {
  if (auto good = begin(kind == wait_kind::message ? kConsumerRole : kProducerRole); !good) return good.error();
  if (kind == wait_kind::buffer && !memory_.can_write_payload()) {
    return failure(errc::role,
                   "queue: it was created with readonly_payload, so only its creator can write into the buffers: this "
                   "handle cannot send");
  }
  std::atomic<watcher*>& place = watchers_[static_cast<std::size_t>(kind)];
  if (const watcher* const there = place.load(); there != nullptr) return there->fd();
  auto made = watcher::start(*this, kind);
  if (!made) return made.error();
  watcher* there = nullptr;
  if (place.compare_exchange_strong(there, made->get())) there = made->release();
  return there->fd();  // if another thread was faster, this is the descriptor of its watcher
}

bool core::is_available(wait_kind kind) {
  const ring& view = memory_.view();
  const bool drops = memory_.shape().full == static_cast<std::uint8_t>(full::drop_oldest);
  if (kind == wait_kind::message) return view.has_message(take_hint_);
  return view.has_free_buffer() || (drops && view.has_message(take_hint_));
}

bool core::would_fail(wait_kind kind, std::uint64_t& look_again_ns) {
  if (is_cancelled() || !check_usable() || who_.is_evicted()) return true;
  if (kind == wait_kind::buffer && producer_closed_.load()) return true;
  const auto checked = kind == wait_kind::message ? check_can_receive() : check_consumers(deadline::now());
  if (!checked) return true;
  look_again_ns = checked.value();
  return false;
}

// Waits until a call would return anything but `timeout`, and returns true. Returns false if the watcher `by` is being
// destroyed. `asked` gets the value that asked() had before the last look.
bool core::wait_until_ready(wait_kind kind, watcher& by, std::uint32_t& asked) {
  const ring& view = memory_.view();
  for (std::uint64_t now = coarse_ns();; now = coarse_ns()) {
    asked = by.asked();
    if (by.is_over()) return false;
    if (who_.is_evicted()) return true;
    std::uint64_t until_ns = slice_end_ns(view, who_.index(), now);
    const std::uint32_t seen = begin_wait(view, kind, who_.index());
    if (by.is_over()) return false;
    if (is_available(kind)) {
      if (may_try(kind, now)) return true;
      if (const std::uint64_t over = pass_on(view, kind, now); over != 0) until_ns = std::min(until_ns, over + kTickNs);
    }
    std::uint64_t look_again_ns = kNever;
    if (would_fail(kind, look_again_ns)) return true;
    (void)sleep(view, kind, who_.index(), seen, std::min(until_ns, look_again_ns));
    (void)who_.sweep_if_due(coarse_ns());
  }
}

void core::tell_watcher(wait_kind kind, const error* why) {
  watcher* const watches = watchers_[static_cast<std::size_t>(kind)].load(std::memory_order_acquire);
  if (watches == nullptr || !is_ours()) return;
  const ring& view = memory_.view();
  if (why == nullptr && !who_.is_evicted()) {
    // The call used the turn of the watcher's thread. So the thread gets a new ticket and is behind the other waiters.
    take_new_ticket(view, kind, who_.index());
    (void)pass_on(view, kind, coarse_ns());
  }
  std::uint64_t look_again_ns = kNever;
  const bool goes_on =
      why == nullptr ? is_available(kind) || would_fail(kind, look_again_ns) : why->code != errc::timeout;
  if (!goes_on) watches->look_again();
}

}  // namespace forksight::ipc::detail
