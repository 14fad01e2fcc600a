#include "feeder.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include "cancellation.hpp"
#include "failure.hpp"

namespace forksight::ipc::detail {
namespace {

// The number of messages that were sent or lost. Messages are sent or lost in the order in which they were accepted. So
// the next message that will be sent or lost has this number.
std::uint64_t settled(const delivery& counts) { return counts.sent + counts.lost; }

}  // namespace

// The feeders whose lock must be held across fork(). pthread_atfork() handlers cannot be removed, so they are
// registered once for all feeders.
struct feeder_forks {
  static feeder_forks& get() {
    // never destroyed, because the handlers outlive all static objects
    static feeder_forks* const all = new feeder_forks;
    return *all;
  }
  void add(feeder* one) {
    const std::lock_guard<std::mutex> guard(mutex);
    if (!is_registered) {
      pthread_atfork([] { get().prepare(); }, [] { get().parent(); }, [] { get().child(); });
      is_registered = true;
    }
    feeders.push_back(one);
  }
  void remove(feeder* one) {
    const std::lock_guard<std::mutex> guard(mutex);
    std::erase(feeders, one);
  }
  void prepare() {
    mutex.lock();
    for (feeder* const one : feeders) one->state_->mutex.lock();
  }
  void parent() {
    for (feeder* const one : feeders) one->state_->mutex.unlock();
    mutex.unlock();
  }
  // The forking thread holds all these mutexes, so it may unlock them in the child. The condition variables may record
  // waiting threads of the parent, so the child constructs them again.
  void child() {
    for (feeder* const one : feeders) {
      one->state_->mutex.unlock();
      new (&one->state_->changed) std::condition_variable;
      new (&one->state_->ended) std::condition_variable;
    }
    mutex.unlock();
  }

  std::mutex mutex;
  std::vector<feeder*> feeders;
  bool is_registered = false;
};

feeder::feeder(std::shared_ptr<core> to, bool atfork_handlers)
    : core_(std::move(to)), state_(std::make_unique<state>()), has_atfork_(atfork_handlers) {
  if (has_atfork_) feeder_forks::get().add(this);
}

feeder::~feeder() {
  if (!core_->is_ours()) {
    // The feeder thread exists only in the parent. This child leaks the mutex and the condition variables. The mutex
    // may be locked, and a condition variable may record a waiter. A mutex and a condition variable must not be
    // destroyed in these states.
    if (has_atfork_) feeder_forks::get().remove(this);
    if (thread_.joinable()) new (&thread_) std::thread;
    (void)state_.release();
    return;
  }
  {
    const uncancellable guard;
    (void)close(deadline::never());
  }
  if (has_atfork_) feeder_forks::get().remove(this);
}

result<void> feeder::put(const void* data, std::size_t bytes) {
  const std::lock_guard<std::mutex> guard(state_->mutex);
  if (auto usable = core_->check_usable(); !usable) return usable;
  if (core_->is_cancelled()) return failure(errc::cancelled, "queue: cancel() was called on this handle");
  if (state_->is_closing)
    return failure(errc::closed,
                   "queue: close_producer() was called on this handle, so it cannot send any more: attach again");
  if (state_->failed) {
    error why = std::move(*state_->failed);
    state_->failed.reset();
    why.text = "an earlier message could not be sent: " + why.text;
    return why;
  }
  if (!state_->has_started) {
    try {
      thread_ = std::thread([this] { run(); });
      state_->has_started = true;
    } catch (const std::system_error& why) {
      return failed_call(why.code().value(), "queue: starting its feeder thread");
    }
  }
  const char* const from = static_cast<const char*>(data);
  state_->list.emplace_back(from, from + bytes);
  ++state_->counts.accepted;
  state_->changed.notify_one();
  return {};
}

// Waits until `done` is true. False: the deadline has passed.
template <class Done>
bool feeder::wait(std::unique_lock<std::mutex>& lock, deadline until, Done done) {
  if (!until.is_never()) return state_->ended.wait_until(lock, until.at(), done);
  state_->ended.wait(lock, done);
  return true;
}

// The caller holds the lock.
result<delivery> feeder::answer(bool is_done) const {
  delivery counts = state_->counts;
  counts.pending = counts.accepted - settled(counts);
  if (!is_done) {
    return failure(errc::timeout, "queue: the feeder thread has not sent %llu of %llu messages yet, and %llu were lost",
                   static_cast<unsigned long long>(counts.pending), static_cast<unsigned long long>(counts.accepted),
                   static_cast<unsigned long long>(counts.lost));
  }
  if (counts.lost == 0) return counts;
  const delivery::lost_range& first = counts.lost_ranges.front();
  const bool is_one_range = first.count == counts.lost;
  return failure(errc::undelivered, "queue: %llu of %llu messages did not get into the queue, %s %llu%s%s: %s",
                 static_cast<unsigned long long>(counts.lost), static_cast<unsigned long long>(counts.accepted),
                 counts.lost == 1 ? "number"
                 : is_one_range   ? "numbers"
                                  : "the first are numbers",
                 static_cast<unsigned long long>(first.first), first.count == 1 ? "" : " to ",
                 first.count == 1 ? "" : std::to_string(first.first + first.count - 1).c_str(), first.why.text.c_str());
}

result<delivery> feeder::flush(deadline until) {
  if (auto usable = core_->check_usable(); !usable) return usable.error();
  std::unique_lock<std::mutex> lock(state_->mutex);
  const std::uint64_t to = state_->counts.accepted;
  return answer(wait(lock, until, [&] { return settled(state_->counts) >= to; }));
}

delivery feeder::delivered() const {
  if (!core_->is_ours()) return {};
  const std::lock_guard<std::mutex> guard(state_->mutex);
  delivery counts = state_->counts;
  counts.pending = counts.accepted - settled(counts);
  return counts;
}

// Any number of threads may call this at once. All of them wait until the feeder thread has ended its work, and one of
// them joins the feeder thread.
result<delivery> feeder::close(deadline until) {
  // A forked child does not have the feeder thread. In the child's copy of the memory, a thread that does not exist in
  // the child may hold the lock.
  if (!core_->is_ours()) return core_->check_usable().error();
  std::thread mine;
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->is_closing = true;
  state_->changed.notify_one();
  const bool is_done = wait(lock, until, [&] { return !state_->has_started || state_->has_ended; });
  auto told = answer(is_done);
  if (!is_done) return told;
  mine = std::move(thread_);
  lock.unlock();
  const uncancellable guard;  // the thread has ended its work, so join() returns soon
  if (mine.joinable()) mine.join();
  return told;
}

// Counts the next message as lost. The caller holds the lock.
void feeder::count_lost(error why) {
  delivery& counts = state_->counts;
  const std::uint64_t number = settled(counts);
  ++counts.lost;
  if (!counts.lost_ranges.empty()) {
    delivery::lost_range& last = counts.lost_ranges.back();
    if (last.first + last.count == number && last.why.code == why.code) {
      ++last.count;
      return;
    }
  }
  if (counts.lost_ranges.size() < delivery::kMostRanges) counts.lost_ranges.push_back({number, 1, std::move(why)});
}

void feeder::run() {
  // The name shows debuggers and forksight which queue the thread belongs to.
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "feed-%08x", static_cast<unsigned>(core_->memory().shape().id[0] >> 32));
  pthread_setname_np(pthread_self(), name.data());
  for (;;) {
    std::vector<char> next;
    {
      std::unique_lock<std::mutex> lock(state_->mutex);
      state_->changed.wait(lock, [&] { return state_->is_closing || !state_->list.empty(); });
      if (state_->list.empty()) {
        state_->has_ended = true;
        state_->ended.notify_all();
        return;
      }
      next = std::move(state_->list.front());
      state_->list.pop_front();
    }
    auto to = core_->acquire(core_, deadline::never());
    std::optional<error> why;
    if (!to) {
      why = to.error();
    } else {
      if (!next.empty()) std::memcpy(to->data(), next.data(), next.size());
      if (auto sent = core_->send(*to, next.size(), deadline::never()); !sent) why = sent.error();
    }
    const std::lock_guard<std::mutex> guard(state_->mutex);
    if (why) {
      state_->failed = why;
      count_lost(*std::move(why));
    } else {
      ++state_->counts.sent;
    }
    state_->ended.notify_all();
  }
}

}  // namespace forksight::ipc::detail
