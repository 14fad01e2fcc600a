// A word of shared memory. The state machine makes every access to shared memory through this class. The model checker
// compiles the same sources with FORKSIGHT_IPC_MODEL. So the checker sees each access, and decides which process runs
// next.
//
// All read-modify-write operations are sequentially consistent. The loads that decide whether to sleep or to wake are
// sequentially consistent, too. Comments name the access of another process with which such a load pairs.
#pragma once

#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>

namespace forksight::ipc::detail {

#ifdef FORKSIGHT_IPC_MODEL
void model_step(const void* word);
void model_saw(std::uint64_t value);
#else
inline void model_step(const void* /*word*/) {}
inline void model_saw(std::uint64_t /*value*/) {}
#endif

// Adds to a word that only the threads of this process write. Returns the old value.
template <class T>
T add_own(std::atomic<T>& word, T more) {
  if (__libc_single_threaded == 0) return word.fetch_add(more);
  const T before = word.load(std::memory_order_relaxed);
  word.store(before + more, std::memory_order_relaxed);
  return before;
}

template <class T>
class shared_word {
 public:
  T load() const {
    model_step(this);
    const T value = value_.load(std::memory_order_seq_cst);
    model_saw(value);
    return value;
  }
  // For values that another word guards.
  T load_relaxed() const {
    model_step(this);
    const T value = value_.load(std::memory_order_relaxed);
    model_saw(value);
    return value;
  }
  void store_relaxed(T value) {
    model_step(this);
    value_.store(value, std::memory_order_relaxed);
  }
  void store_release(T value) {
    model_step(this);
    value_.store(value, std::memory_order_release);
  }
  // True: the word was `expected`, and is now `desired`. False: the word was another value, which is now in `expected`.
  bool exchange_if(T& expected, T desired) {
    model_step(this);
    const bool done = value_.compare_exchange_strong(expected, desired, std::memory_order_seq_cst);
    model_saw(done ? ~std::uint64_t{0} : expected);
    return done;
  }
  T fetch_or(T bits) {
    model_step(this);
    const T before = value_.fetch_or(bits, std::memory_order_seq_cst);
    model_saw(before);
    return before;
  }
  T fetch_and(T bits) {
    model_step(this);
    const T before = value_.fetch_and(bits, std::memory_order_seq_cst);
    model_saw(before);
    return before;
  }
  T fetch_add(T count) {
    model_step(this);
    const T before = value_.fetch_add(count, std::memory_order_seq_cst);
    model_saw(before);
    return before;
  }
  // For counters that are only reported.
  void count(T more) { value_.fetch_add(more, std::memory_order_relaxed); }
  // For counters that only one process writes.
  void count_own(T more) { add_own(value_, more); }
  void raise_to(T value) {
    T before = value_.load(std::memory_order_relaxed);
    while (before < value && !value_.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
    }
  }
  T peek() const { return value_.load(std::memory_order_relaxed); }
  // The address of the word, for the futex system call.
  std::uint32_t* address() {
    static_assert(sizeof(T) == sizeof(std::uint32_t));
    return reinterpret_cast<std::uint32_t*>(&value_);
  }

 private:
  std::atomic<T> value_;
  static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T));
};

}  // namespace forksight::ipc::detail
