#include "diagnose/futex_waits.hpp"

#include <string_view>

#include "diagnose/words.hpp"

namespace forksight::futex_waits {

namespace {

struct Known {
  std::string_view part;  // a part of a function's name
  const char* what;
  const char* other_side;
};

constexpr const char kSetter[] = "the promise, std::async or packaged task that sets it";
constexpr const char kNotifier[] = "the thread that changes the value and calls notify";
constexpr const char kHolder[] = "the thread that holds it";

// Functions of libstdc++, libc++, libc, libgomp, Rust's standard library and crates, abseil and folly. Some functions
// of libstdc++ are inlined: only debug information contains their names. Other functions of libstdc++ are exported:
// even a stripped library contains their names. A function comes before the functions that it is built on, because the
// first match counts.
constexpr Known kKnown[] = {
    {"std::future<", "std::future::get()", kSetter},
    {"std::shared_future<", "std::shared_future::get()", kSetter},
    {"std::__basic_future<", "a std::future", kSetter},
    {"std::__future_base::", "a std::future", kSetter},
    {"std::__atomic_futex_unsigned", "a std::future", kSetter},
    {"std::latch::", "std::latch::wait()", "the threads that count it down"},
    {"std::barrier<", "std::barrier::wait()", "the other threads that arrive"},
    {"std::__tree_barrier", "std::barrier::wait()", "the other threads that arrive"},
    {"std::counting_semaphore<", "std::counting_semaphore::acquire()", "the thread that releases it"},
    {"std::__atomic_semaphore::", "std::counting_semaphore::acquire()", "the thread that releases it"},
    {"__cxa_guard_acquire", "the initialisation of a static variable", "the thread that initialises it"},
    {"std::atomic", "std::atomic::wait()", kNotifier},
    {"std::__atomic_base<", "std::atomic::wait()", kNotifier},
    {"std::__atomic_wait", "std::atomic::wait()", kNotifier},
    {"std::__detail::__platform_wait", "std::atomic::wait()", kNotifier},
    {"std::__1::__libcpp_atomic", "std::atomic::wait()", kNotifier},
    {"std::__1::__cxx_atomic", "std::atomic::wait()", kNotifier},
    {"parking_lot", "a parking_lot lock", kHolder},
    {"Mutex::lock_contended", "a Rust std::sync::Mutex", kHolder},
    {"RwLock::read_contended", "a Rust std::sync::RwLock", kHolder},
    {"RwLock::write_contended", "a Rust std::sync::RwLock", kHolder},
    {"Condvar::wait", "a Rust std::sync::Condvar", "the thread that notifies it"},
    {"std::condition_variable::wait", "std::condition_variable::wait()", "the thread that notifies it"},
    {"pthread_cond_wait", "pthread_cond_wait()", "the thread that signals it"},
    {"cnd_wait", "cnd_wait()", "the thread that signals it"},
    {"pthread_barrier_wait", "pthread_barrier_wait()", "the other threads that arrive"},
    {"sem_wait", "sem_wait()", "the thread that posts it"},
    {"GOMP_critical", "#pragma omp critical", "the thread that is inside of it"},
    {"GOMP_barrier", "#pragma omp barrier", "the other threads of its team"},
    {"GOMP_parallel", "the end of a parallel region", "the other threads of its team"},
    {"omp_set_lock", "omp_set_lock()", "the thread that has it"},
    {"omp_set_nest_lock", "omp_set_nest_lock()", "the thread that has it"},
    {"std::thread::park", "Rust's thread::park()", "the thread that unparks it"},
    // the name of park() in later releases of Rust
    {"std::thread::functions::park", "Rust's thread::park()", "the thread that unparks it"},
    {"absl::", "an abseil Mutex or CondVar", "the thread that holds it, or that signals it"},
    {"folly::", "a folly lock or baton", "the thread that holds it, or that posts it"},
};

// Returns the first entry whose `part` occurs in the name of the function; null if there is none. Only the text before
// the parameters is searched, because the types of the parameters do not say what the function is.
const Known* find_known(std::string_view function) {
  function = function.substr(0, function.find('('));
  for (const Known& known : kKnown) {
    if (function.find(known.part) != std::string_view::npos) return &known;
  }
  return nullptr;
}

const Known* find_known(const model::Stack& stack) {
  // The search goes from the user's frame inwards. So it first reaches the function that the user called, and then the
  // functions that implement it.
  const std::size_t user = words::find_user_part(stack).first;
  for (std::size_t i = user; i-- > 0;) {
    if (const Known* const known = find_known(stack.frames[i].function)) return known;
  }
  // The libraries below are not the standard library of a language, so find_user_part() counts their frames as the
  // user's frames. So `user` may be a frame of such a library. The loop above does not search the frame `user`.
  for (const char* const library : {"absl::", "folly::", "parking_lot"}) {
    if (user == stack.frames.size() || !stack.frames[user].function.starts_with(library)) continue;
    if (const Known* const known = find_known(library)) return known;
  }
  return nullptr;
}

}  // namespace

Purpose find_purpose(const model::Stack& stack) {
  const Known* const known = find_known(stack);
  if (known == nullptr) return {"a futex", "a thread that wakes it", false};
  return {known->what, known->other_side, known->other_side == kHolder};
}

bool is_recognised(const model::Stack& stack) { return find_known(stack) != nullptr; }

}  // namespace forksight::futex_waits
