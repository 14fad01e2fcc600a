// Mechanism: none. A consumer is killed while it has a message. If the consumer held a lock in shared memory instead,
//            the lock would stay taken for ever. But the message goes to the next consumer, which releases the
//            message's buffer as usual.
// To blame:  nobody. torch.multiprocessing and Boost.Interprocess hang in this situation.
// User sees: the message is delivered a second time.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <forksight/ipc/queue.hpp>
#include <signal.h>

#include "../baton.h"

namespace ipc = forksight::ipc;
using namespace std::chrono_literals;

int main() {
  ipc::options shape;
  shape.slots = shape.buffers = 2;
  shape.after_death = ipc::on_death::redeliver;
  auto made = ipc::queue::create(shape);
  if (!made || !made->send_copy("first", 5) || !made->send_copy("second", 6)) return 1;
  const baton has_it = baton_make();
  const pid_t victim = fork();
  if (victim == 0) {
    auto own = made->reattach_after_fork();
    const auto message = own->receive();
    baton_pass(has_it);
    park();
  }
  baton_wait(has_it);
  kill(victim, SIGKILL);
  if (end_of(victim) != 128 + SIGKILL) return 2;
  const pid_t next = fork();
  if (next == 0) {
    auto own = made->reattach_after_fork();
    auto first = own->receive(ipc::deadline::after(20s));
    _exit(first && first->size() == 5 && first->deliveries() == 2 ? 0 : 1);
  }
  return end_of(next);
}
