// pthread_cancel(). The only instants at which it ends a call of the queue are those that a wait chooses, between two
// sleeps: there nothing is half done. Elsewhere, above all in destructors, in which unwinding would end the program, it
// waits.
#pragma once

#include <pthread.h>

namespace forksight::ipc::detail {

class uncancellable {
 public:
  uncancellable() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  uncancellable(const uncancellable&) = delete;
  uncancellable& operator=(const uncancellable&) = delete;
  ~uncancellable() { pthread_setcancelstate(before_, nullptr); }

  // Ends the thread here if it was asked to end.
  void let_cancel() {
    int ours = 0;
    pthread_setcancelstate(before_, &ours);
    pthread_testcancel();
    pthread_setcancelstate(ours, nullptr);
  }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace forksight::ipc::detail
