// Mechanism: a worker puts more items into a queue with a feeder thread than the queue has room for, and ends. The
//            worker's handle waits until all items are sent. The parent waits for the worker's end before it receives
//            anything.
// To blame:  the parent, which joins the worker before it has drained the queue. CPython's documentation warns of this.
// User sees: a worker that has done its work and does not end. inspect() shows that the worker waits for a buffer, and
//            that the queue has no consumer.
// Fix:       receive first, then wait for the worker.
// Repaired:  the parent receives first.
//
// The parent waits two seconds, and then looks at the queue. forksight reports nothing, because the wait can still end:
// another process may attach and receive at any time.
//
// EXPECT-BARE: error
// EXPECT-NONE
#include <forksight/ipc/queue.hpp>
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>

#include "../baton.h"

namespace ipc = forksight::ipc;
using namespace std::chrono_literals;

constexpr int kItems = 5;

static int work(const ipc::queue& parents) {
  auto own = parents.reattach_after_fork();
  for (int i = 0; i < kItems; ++i) {
    if (!own || !own->send_copy(&i, sizeof i)) return 1;
  }
  return 0;  // ~queue waits for the feeder
}

static bool drain(ipc::queue& queue) {
  for (int i = 0; i < kItems; ++i) {
    auto message = queue.receive(ipc::deadline::after(20s));
    if (!message || *static_cast<const int*>(message->data()) != i) return false;
  }
  return true;
}

#ifndef REPAIRED
static bool says_who_waits(const ipc::queue& queue, pid_t worker) {
  const ipc::snapshot seen = queue.inspect();
  const bool waits = std::any_of(seen.participants.begin(), seen.participants.end(), [&](const auto& one) {
    return one.pid == static_cast<std::uint32_t>(worker) && one.is_producer && one.waits_for_buffer;
  });
  const bool has_consumer =
      std::any_of(seen.participants.begin(), seen.participants.end(), [](const auto& one) { return one.is_consumer; });
  return waits && !has_consumer && seen.queued == 2;
}
#endif

int main() {
  ipc::options shape;
  shape.feeding = ipc::feed::thread;
  shape.slots = shape.buffers = 2;
  auto made = ipc::queue::create(shape);
  if (!made) return 2;
  const pid_t worker = fork();
  if (worker == 0) {
    const int status = work(*made);
    _exit(status);
  }
#ifdef REPAIRED
  if (!drain(*made)) return 3;
  return end_of(worker);
#else
  pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, worker, 0)), POLLIN, 0};
  const bool has_ended = poll(&ended, 1, 2000) == 1;
  const bool is_said = says_who_waits(*made, worker);
  if (has_ended || !is_said || !drain(*made)) return 3;
  return end_of(worker) == 0 ? 1 : 4;
#endif
}
