// pthread_cancel() may end a call of the queue only between two sleeps of a wait, where nothing is half done. Elsewhere
// the request stays pending, above all in destructors: unwinding out of one would end the program.
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
