// Scenes in which a child of fork() waits for a lock that does not record who holds it. The lock is a mutex like that
// of Rust's standard library. The functions of this mutex have the names of Rust's functions. So the tests need no Rust
// compiler.
//
//   scenes SCENE
//
//   holder     a thread of the parent holds the lock
//   pair       a thread holds the lock, and another thread only has the address of the lock
//   crowd      a thread holds the lock, and four other threads only have the address of the lock
//   leaked     a thread took the lock and has ended; another thread only has the address
//   forker     the thread that forks holds the lock; another thread only has the address
//   finished   the thread that forks holds the lock; another thread has used the lock in a function that has returned
//   waiter     the thread that forks holds the lock, and another thread waits for it
//   elsewhere  a thread holds the lock and waits for a second lock, which the thread that forks holds
//   own        a thread that the child has started holds the lock
//   free       nobody holds the lock: the child takes it and ends
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <string>

#include "../../repro/baton.h"

// forksight knows the lock by the names of its functions.
namespace std::sys::sync::mutex::futex {  // NOLINT(cert-dcl58-cpp)

struct Mutex {
  [[gnu::noinline]] void lock() {
    int free = 0;
    if (!word.compare_exchange_strong(free, 1)) lock_contended();
  }
  [[gnu::noinline]] void lock_contended() {
    while (word.exchange(2) != 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
  }
  [[gnu::noinline]] void unlock() {
    if (word.exchange(0) == 2) syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  std::atomic<int> word{0};
};

}  // namespace std::sys::sync::mutex::futex

namespace {

using std::sys::sync::mutex::futex::Mutex;

baton ready = baton_make();
std::atomic<pid_t> ready_tid{0};
[[gnu::noinline]] void tell_ready() {
  ready_tid = gettid();
  baton_pass(ready);
}

// `is_over` stays 0. The compiler does not know this, so it cannot see that sleep_for_ever() never returns.
std::atomic<int> is_over{0};
[[gnu::noinline]] void sleep_for_ever() {
  while (is_over.load() == 0) syscall(SYS_futex, &is_over, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

class Guard {
 public:
  explicit Guard(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Guard() { mutex_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Mutex& mutex_;
};

[[gnu::noinline]] void fill_cache(Mutex& mutex) {
  const Guard guard(mutex);
  tell_ready();
  sleep_for_ever();
}

[[gnu::noinline]] void use_later(Mutex& mutex) {
  tell_ready();
  sleep_for_ever();
  const Guard guard(mutex);
}

[[gnu::noinline]] void leave_taken(Mutex& mutex) {
  mutex.lock();
  tell_ready();
}

[[gnu::noinline]] void read_cache(Mutex& mutex) {
  tell_ready();
  const Guard guard(mutex);
}

// Fills its frame with the address of the mutex. The frame is larger than the frames of the functions that run later.
[[gnu::noinline]] void use_once(Mutex& mutex) {
  Mutex* volatile copies[64];
  for (auto& copy : copies) copy = &mutex;
  const Guard guard(*copies[63]);
}

[[gnu::noinline]] void rest() {
  tell_ready();
  sleep_for_ever();
}

struct Shared {
  Mutex first;
  Mutex second;
};

// The threads start in these functions. The argument is the address of a Shared. This is also the address of its member
// `first`. finished_main() ignores its argument, and reads the address from a global variable.
void* holder_main(void* shared) {
  fill_cache(static_cast<Shared*>(shared)->first);
  return nullptr;
}
void* pointer_main(void* shared) {
  use_later(static_cast<Shared*>(shared)->first);
  return nullptr;
}
void* leak_main(void* shared) {
  leave_taken(static_cast<Shared*>(shared)->first);
  return nullptr;
}
void* waiter_main(void* shared) {
  read_cache(static_cast<Shared*>(shared)->first);
  return nullptr;
}
std::atomic<Shared*> used_once{nullptr};
void* finished_main(void*) {
  use_once(used_once.load()->first);
  rest();
  return nullptr;
}
[[gnu::noinline]] void hold_first_wait_for_second(Shared& shared) {
  const Guard guard(shared.first);
  tell_ready();
  const Guard other(shared.second);
}
void* elsewhere_main(void* shared) {
  hold_first_wait_for_second(*static_cast<Shared*>(shared));
  return nullptr;
}

// True while the thread exists and has not begun to sleep in a futex.
bool is_on_its_way(pid_t tid) {
  const std::string path = "/proc/self/task/" + std::to_string(tid) + "/syscall";
  std::string call;
  return static_cast<bool>(std::getline(std::ifstream(path), call)) && !call.starts_with("202 ");
}

// Returns when the thread sleeps in a futex or has ended.
pthread_t start(void* (*routine)(void*), Shared& shared, const char* name) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, routine, &shared) != 0) abort();
  pthread_setname_np(thread, name);
  baton_wait(ready);
  while (is_on_its_way(ready_tid)) sched_yield();
  return thread;
}

[[gnu::noinline]] int lock_in_child(Mutex& mutex) {
  const Guard guard(mutex);
  return 0;
}

}  // namespace

int main(int, char** argv) {
  const auto is = [scene = argv[1]](const char* name) { return std::strcmp(scene, name) == 0; };
  Shared& shared = *new Shared;
  used_once = &shared;
  if (is("holder") || is("pair") || is("crowd")) start(holder_main, shared, "holder");
  if (is("leaked")) pthread_join(start(leak_main, shared, "leak"), nullptr);
  if (is("pair") || is("leaked") || is("forker") || is("own")) start(pointer_main, shared, "pointer");
  if (is("forker") || is("waiter")) shared.first.lock();
  if (is("crowd")) {
    for (int i = 0; i < 4; ++i) start(pointer_main, shared, "pointer");
  }
  if (is("finished")) {
    start(finished_main, shared, "finished");
    shared.first.lock();
  }
  if (is("waiter")) start(waiter_main, shared, "waiter");
  if (is("elsewhere")) {
    shared.second.lock();
    start(elsewhere_main, shared, "elsewhere");
  }
  if (is("free")) start(finished_main, shared, "finished");
  const pid_t child = fork();
  if (child != 0) return end_of(child);
  if (is("own")) start(holder_main, shared, "own");
  return lock_in_child(shared.first);
}
