// Mechanism: a consumer takes all buffers of a queue and is then stopped (by a debugger, by job control, or because its
//            control group is frozen). The consumer is not dead, so its buffers are not taken from it. The producer
//            waits for a free buffer.
// To blame:  the process that stopped the consumer. The consumer may go on at any time. If its buffers were given to
//            other processes, the consumer would read corrupted data.
// User sees: the producer's acquire() ends at its deadline. The error names the pid of the process that holds the
//            buffers. It also says that this process is alive, its state T, and for how long it has held the buffers.
// Fix:       let the consumer go on (SIGCONT). Or end it: its buffers are then free within 50 ms.
// Repaired:  the consumer is killed, and the same call gets a buffer.
//
// EXPECT-BARE: error
// EXPECT-NONE
#include <signal.h>
#include <forksight/ipc/queue.hpp>

#include "../baton.h"

namespace ipc = forksight::ipc;
using namespace std::chrono_literals;

int main() {
  ipc::options shape;
  shape.slots = shape.buffers = 2;
  auto made = ipc::queue::create(shape);
  if (!made || !made->send_copy("one", 3) || !made->send_copy("two", 3)) return 2;
  const baton has_both = baton_make();
  const pid_t consumer = fork();
  if (consumer == 0) {
    auto own = made->reattach_after_fork();
    const auto first = own->receive();
    const auto second = own->receive();
    baton_pass(has_both);
    park();
  }
  baton_wait(has_both);
  kill(consumer, SIGSTOP);
  int status = 0;
  if (waitpid(consumer, &status, WUNTRACED) != consumer || !WIFSTOPPED(status)) return 3;
#ifdef REPAIRED
  kill(consumer, SIGKILL);
#endif
  const auto buffer = made->acquire(ipc::deadline::after(300ms));
  const std::string said = buffer ? std::string() : buffer.error().text;
  if (!buffer) fprintf(stderr, "%s\n", said.c_str());
  kill(consumer, SIGKILL);
  if (end_of(consumer) != 128 + SIGKILL) return 4;
  if (buffer) return 0;
  const std::string who = "2 HELD by pid " + std::to_string(consumer) + " (alive, state T";
  return said.find(who) != std::string::npos ? 1 : 5;
}
