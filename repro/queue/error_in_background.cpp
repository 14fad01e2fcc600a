// Mechanism: send_copy() of a queue with a feeder thread returns before the message is sent. The other side shuts the
//            queue down. The messages on the feeder's list are lost, and no call is running that could return the
//            error.
// To blame:  a producer that makes no call after send_copy(). It believes that the message has arrived when send_copy()
//            returns.
// User sees: the next call of the producer returns an error. The error says that an earlier message could not be sent,
//            and gives the reason.
// Fix:       use feed::direct, whose send_copy() returns the error. Or call flush() or close_producer() before the end.
// Repaired:  the queue has feed::direct. send_copy() itself returns the error.
//
// EXPECT-BARE: error
// EXPECT-NONE
#include <forksight/ipc/queue.hpp>

#include "../baton.h"

namespace ipc = forksight::ipc;
using namespace std::chrono_literals;

int main() {
  ipc::options shape;
  shape.slots = shape.buffers = 2;
#ifndef REPAIRED
  shape.feeding = ipc::feed::thread;
#endif
  auto made = ipc::queue::create(shape);
  if (!made) return 2;
  auto other = ipc::queue::attach(made->fd(), ipc::role::consumer);
  if (!other) return 3;
  other->shutdown(false);
#ifdef REPAIRED
  const auto sent = made->send_copy("lost", 4);
  return !sent && sent.error().code == ipc::errc::closed ? 0 : 1;
#else
  if (!made->send_copy("lost", 4)) return 4;
  // The feeder notices the shutdown in the background. Until then, send_copy() still succeeds.
  for (;;) {
    const auto next = made->send_copy("lost, too", 9);
    if (next) continue;
    fprintf(stderr, "%s\n", next.error().text.c_str());
    const bool is_said =
        next.error().code == ipc::errc::closed &&
        next.error().text.find("an earlier message could not be sent: queue: was shut down") != std::string::npos;
    return is_said ? 1 : 5;
  }
#endif
}
