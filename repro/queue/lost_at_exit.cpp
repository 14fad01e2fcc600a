// Mechanism: a worker puts items into a queue with a feeder thread and ends by _exit(). The items on the feeder's list
//            are never sent.
// To blame:  _exit() of a process whose queue has a feeder.
// User sees: fewer messages than the worker put into the queue, and then producer_died with the worker's pid.
// Fix:       call close_producer() or destroy the handle before _exit(). Both wait until all items of the list are
//            sent.
// Repaired:  the worker calls close_producer().
//
// EXPECT-BARE: error
// EXPECT-NONE
#include <forksight/ipc/queue.hpp>

#include "../baton.h"

namespace ipc = forksight::ipc;
using namespace std::chrono_literals;

constexpr int kItems = 6;
constexpr int kRoom = 2;

int main() {
  ipc::options shape;
  shape.feeding = ipc::feed::thread;
  shape.slots = shape.buffers = kRoom;
  auto made = ipc::queue::create(shape);
  if (!made) return 2;
  const baton is_put = baton_make();
  const pid_t worker = fork();
  if (worker == 0) {
    auto own = made->reattach_after_fork();
    for (int i = 0; i < kItems; ++i) {
      if (!own || !own->send_copy(&i, sizeof i)) _exit(1);
    }
    // Waits until the feeder has sent as many items as the queue has room for.
    while (own->inspect().queued != kRoom) {
    }
    baton_pass(is_put);
#ifdef REPAIRED
    if (!own->close_producer()) _exit(1);
#endif
    _exit(0);
  }
  baton_wait(is_put);
#ifndef REPAIRED
  if (end_of(worker) != 0) return 3;
#endif
  int received = 0;
  ipc::errc end{};
  std::uint32_t who = 0;
  for (;;) {
    const auto message = made->receive(ipc::deadline::after(20s));
    if (message) {
      ++received;
      continue;
    }
    fprintf(stderr, "%d of %d: %s\n", received, kItems, message.error().text.c_str());
    end = message.error().code;
    who = message.error().pid;
    break;
  }
#ifdef REPAIRED
  (void)who;
  if (end_of(worker) != 0) return 4;
  return received == kItems && (end == ipc::errc::closed || end == ipc::errc::producer_died) ? 0 : 1;
#else
  const bool is_said = end == ipc::errc::producer_died && who == static_cast<std::uint32_t>(worker);
  return is_said && received == kRoom ? 1 : 5;
#endif
}
