// Static variables of functions. The first thread that needs such a variable initialises it, once. If an exception ends
// the initialisation, the next call tries again.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "probe.h"

#include <unistd.h>

namespace {

std::atomic<int> g_made;

struct Value {
  explicit Value(int number) : value(number) {
    ++g_made;
    errno = number;  // the caller must see the errno that a constructor sets
  }
  int value;
};

int plain(int number) {
  static Value value(number);
  return value.value;
}

int g_failures;
struct FailsTwice {
  FailsTwice() {
    if (++g_failures < 3) throw std::runtime_error("not yet");
  }
};
int after_failures() {
  static FailsTwice value;
  return g_failures;
}

struct Outer {
  Outer() : inner(plain(8)) {}
  int inner;
};
int nested() {
  static Outer outer;
  return outer.inner;
}

std::atomic<bool> g_is_inside;
std::atomic<pid_t> g_waiter;
struct Slow {
  Slow() {
    ++g_made;
    g_is_inside = true;
    while (g_waiter == 0) std::this_thread::yield();
    wait_until_asleep(g_waiter);
  }
};
void slow() { static Slow value; }

}  // namespace

PROBE(once) {
  g_made = 0;
  SHOW(plain(7));
  SHOW(plain(9));
  SHOW(g_made.load());
  SHOW(nested());
}

// The unwinder needs more stack than the smallest stack has.
PROBE_IN(failing, ANYWHERE & ~IN_SMALL_THREAD) {
  for (int i = 0; i < 4; ++i) {
    try {
      SHOW(after_failures());
    } catch (const std::exception& error) {
      say("  caught %s after %d", error.what(), g_failures);
    }
  }
}

// One thread is in the constructor. Another thread sleeps until the constructor has returned.
PROBE(two_threads) {
  g_made = 0;
  std::thread first(slow);
  while (!g_is_inside) std::this_thread::yield();
  std::thread second([] {
    g_waiter = gettid();
    slow();
  });
  first.join();
  second.join();
  SHOW(g_made.load());
}
