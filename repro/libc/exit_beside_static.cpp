// Mechanism: while main forks, a thread uses static variables with destructors for the first time. The compiler's code
//            registers each destructor. libc locks its list of exit handlers while the list grows. The child inherits
//            that lock in its taken state, and exit() waits for that lock.
// To blame:  exit() in a forked child of a process with threads.
// User sees: the child does not end, at 0 % CPU. Its stack ends in exit(), without any handler.
// Fix:       call _exit() in a forked child that does not exec.
// Repaired:  the child calls _exit().
//
// libc allocates the next part of its list by calloc(). So the program defines calloc() itself, and keeps the worker in
// that function.
// EXPECT-BARE: hang
// EXPECT: inherited-exit-handlers proven/likely hang culprit="libc's list of exit handlers" victims=1
// EXPECT-STACK: stack main@child
// EXPECT-STACK: fork main@fork
#include <pthread.h>

#include <utility>

#include "../baton.h"

extern "C" void* __libc_calloc(std::size_t count, std::size_t size);

namespace {

constexpr int kStatics = 64;  // more than fit into the first part of libc's list
baton is_inside;
thread_local volatile bool is_worker;

struct Table {
  ~Table() { __asm__ volatile(""); }
};

template <int number>
void use() {
  static Table table;
}

template <int... numbers>
void use_all(std::integer_sequence<int, numbers...>) {
  (use<numbers>(), ...);
}

void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  is_worker = true;
  use_all(std::make_integer_sequence<int, kStatics>());
  return unused;
}

}  // namespace

extern "C" void* calloc(std::size_t count, std::size_t size) {
  if (is_worker) {
    is_worker = false;
    baton_pass(is_inside);
    park();
  }
  return __libc_calloc(count, size);
}

int main() {
  pthread_t worker;
  is_inside = baton_make();
  pthread_create(&worker, nullptr, worker_main, nullptr);
  baton_wait(is_inside);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    _exit(0);
#else
    std::exit(0);  // MARK: child
#endif
  }
  _exit(end_of(child));
}
