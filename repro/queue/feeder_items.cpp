// Mechanism: a queue with a feeder thread has a private list of the messages that it must still send. When main forks,
//            a thread is adding a message to the list, and holds the list's lock. The child has neither that thread nor
//            the feeder. The child sends, too, and waits for that lock.
// To blame:  the fork while the list of a queue with a feeder thread is in use.
// User sees: the child stops in send_copy(), at 0 % CPU. The parent waits for the child.
// Fix:       use options::atfork_handlers, or feed::direct, which has no lock. Let the child attach a handle of its
//            own.
// Repaired:  with atfork_handlers the fork waits for the list. The child's call returns used_after_fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-feeder-thread proven hang holder=sender start=send_main victims=1
// EXPECT-STACK: culprit send_main@send
// EXPECT-STACK: stack main@touch
#include <forksight/ipc/queue.hpp>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "../baton.h"

namespace ipc = forksight::ipc;

static ipc::queue* queue;
static char* slow_page;
static baton is_copying, may_copy;

// send_copy() copies the message while it holds the lock. The copy accesses slow_page, and the fault runs this handler.
static void on_fault(int) {
  baton_pass(is_copying);
  baton_wait(may_copy);
  if (mprotect(slow_page, 4096, PROT_READ) != 0) abort();
}

static void* send_main(void* unused) {
  pthread_setname_np(pthread_self(), "sender");
  (void)queue->send_copy(slow_page, 64);  // MARK: send
  park();
  return unused;
}

int main() {
  is_copying = baton_make();
  may_copy = baton_make();
  struct sigaction action {};
  action.sa_handler = on_fault;
  sigaction(SIGSEGV, &action, nullptr);
  slow_page = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

  ipc::options shape;
  shape.feeding = ipc::feed::thread;
#ifdef REPAIRED
  shape.atfork_handlers = true;
#endif
  auto made = ipc::queue::create(shape);
  if (!made) abort();
  queue = &made.value();
  // The first message starts the feeder, which sends the message and waits for more.
  if (!queue->send_copy("first", 5)) abort();
  while (queue->inspect().queued != 1) {
  }
#ifdef REPAIRED
  // This handler is registered after the queue's own handler, so it runs first. It lets the sender go on when the
  // fork has begun.
  pthread_atfork([] { baton_pass(may_copy); }, nullptr, nullptr);
#endif
  pthread_t sender;
  pthread_create(&sender, nullptr, send_main, nullptr);
  baton_wait(is_copying);
  const pid_t child = fork();
  if (child == 0) {
    const auto sent = queue->send_copy("from the child", 14);  // MARK: touch
    _exit(!sent && sent.error().code == ipc::errc::used_after_fork ? 0 : 1);
  }
  const int status = end_of(child);
  queue->shutdown(false);
  _exit(status);
}
