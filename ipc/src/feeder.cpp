#include "feeder.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include "failure.hpp"

namespace forksight::ipc::detail {

// The feeders that ask for their lock to be held across fork(). pthread_atfork() handlers cannot be taken back, so they
// are registered once for all.
struct feeder_forks {
  static feeder_forks& get() {
    static feeder_forks* const all = new feeder_forks;  // outlives every static's end, as the handlers do
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
  // The forking thread holds them all, so they are its to give back; the condition variable may have had a waiter, the
  // feeder, and is made anew.
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
    // The thread is the parent's, and what it waits on may not be destroyed without it.
    if (has_atfork_) feeder_forks::get().remove(this);
    if (thread_.joinable()) new (&thread_) std::thread;
    (void)state_.release();
    return;
  }
  close();
  if (has_atfork_) feeder_forks::get().remove(this);
}

result<void> feeder::put(const void* data, std::size_t bytes) {
  const std::lock_guard<std::mutex> guard(state_->mutex);
  if (auto usable = core_->check_usable(); !usable) return usable;
  if (state_->is_closing) return failure(errc::closed, "queue: close_producer() was called on this handle");
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
      return failed_call(why.code().value(), "queue: its feeder thread");
    }
  }
  const char* const from = static_cast<const char*>(data);
  state_->list.emplace_back(from, from + bytes);
  state_->changed.notify_one();
  return {};
}

// By any number of threads at once: one of them joins the thread, all of them wait until it has sent its list.
void feeder::close() {
  std::thread mine;
  {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->is_closing = true;
    state_->changed.notify_one();
    state_->ended.wait(lock, [&] { return !state_->has_started || state_->has_ended; });
    mine = std::move(thread_);
  }
  if (mine.joinable()) mine.join();
}

void feeder::run() {
  // By its name a debugger, and forksight, know whose it is.
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
    if (!why) continue;
    const std::lock_guard<std::mutex> guard(state_->mutex);
    state_->failed = std::move(why);
  }
}

}  // namespace forksight::ipc::detail
