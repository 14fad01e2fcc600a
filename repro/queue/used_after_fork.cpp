// Mechanism: a child of fork() uses its parent's handle of a queue. The handle's place among the participants, and the
//            buffers that it holds, belong to the parent.
// To blame:  the child, which attaches no handle of its own.
// User sees: each call returns used_after_fork, with a text that says what to do. The parent's messages do not change.
// Fix:       call reattach_after_fork() in the child.
// Repaired:  the child calls reattach_after_fork().
//
// EXPECT-BARE: error
// EXPECT-NONE
#include <forksight/ipc/queue.hpp>

#include "../baton.h"

namespace ipc = forksight::ipc;
using namespace std::chrono_literals;

template <class Result>
static bool is_refused(const Result& result) {
  if (result) return false;
  fprintf(stderr, "%s\n", result.error().text.c_str());
  return result.error().code == ipc::errc::used_after_fork &&
         result.error().text.find("call reattach_after_fork() in the child") != std::string::npos;
}

static int use(ipc::queue& queue, ipc::loan& loan, ipc::message& held) {
#ifdef REPAIRED
  auto own = queue.reattach_after_fork();
  if (!own || !own->send_copy("child", 5)) return 2;
  (void)loan;
  (void)held;
  return 0;
#else
  const bool all = is_refused(queue.acquire(ipc::deadline::now())) && is_refused(queue.receive(ipc::deadline::now())) &&
                   is_refused(queue.send_copy("child", 5)) && is_refused(queue.send(std::move(loan), 1)) &&
                   is_refused(held.release());
  (void)queue.close_producer();
  queue.shutdown(false);
  return all ? 1 : 3;
#endif
}

int main() {
  ipc::options shape;
  shape.slots = shape.buffers = 4;
  auto made = ipc::queue::create(shape);
  if (!made || !made->send_copy("one", 3) || !made->send_copy("two", 3)) return 2;
  auto held = made->receive(ipc::deadline::after(20s));
  auto loan = made->acquire(ipc::deadline::after(20s));
  if (!held || !loan) return 3;
  const pid_t child = fork();
  if (child == 0) _exit(use(*made, *loan, *held));
  const int status = end_of(child);
  // The message and the loan still belong to the parent.
  if (!held->release() || !made->send(std::move(*loan), 1)) return 4;
  auto next = made->receive(ipc::deadline::after(20s));
  return next && next->size() == 3 ? status : 5;
}
