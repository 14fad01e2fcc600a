// Mechanism: a queue has two buffers. Main fills both with requests. The worker writes each answer into a free buffer.
//            But the worker receives both requests and keeps them, so no buffer is free. The worker waits for a free
//            buffer, but only the worker itself can release one.
// To blame:  the worker, which asks for a buffer before it has released one.
// User sees: the worker's acquire() ends at its deadline. The error says that the worker itself holds both buffers.
// Fix:       write the answer into the buffer of the request, and send the index of that buffer. Or release the request
//            first, or have more buffers.
// Repaired:  the worker releases one request before it begins the answer.
//
// EXPECT-BARE: error
// EXPECT-NONE
#include <forksight/ipc/queue.hpp>

#include <cstring>

#include "../baton.h"

namespace ipc = forksight::ipc;
using namespace std::chrono_literals;

static int answer_all(ipc::queue& requests) {
  auto first = requests.receive(ipc::deadline::after(20s));
  auto second = requests.receive(ipc::deadline::after(20s));
  if (!first || !second) return 2;
#ifdef REPAIRED
  if (!first->release()) return 3;
#endif
  auto answer = requests.acquire(ipc::deadline::after(200ms));
  if (answer) return 0;
  fprintf(stderr, "%s\n", answer.error().text.c_str());
  const bool is_said = answer.error().text.find("2 HELD by pid " + std::to_string(getpid())) != std::string::npos;
  return answer.error().code == ipc::errc::timeout && is_said ? 1 : 4;
}

int main() {
  ipc::options shape;
  shape.slots = shape.buffers = 2;
  auto made = ipc::queue::create(shape);
  if (!made || !made->send_copy("one", 3) || !made->send_copy("two", 3)) return 2;
  const pid_t worker = fork();
  if (worker == 0) {
    auto own = made->reattach_after_fork();
    _exit(own ? answer_all(*own) : 5);
  }
  return end_of(worker);
}
