// A wait of the queue consists of several sleeps. pthread_cancel() may end the waiting thread only after such a sleep,
// because no operation is half done at that moment. At other times the request stays pending. This matters most in
// destructors: unwinding out of a destructor would end the program.
#pragma once

#include <pthread.h>

namespace forksight::ipc::detail {

class uncancellable {
 public:
  uncancellable() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  uncancellable(const uncancellable&) = delete;
  uncancellable& operator=(const uncancellable&) = delete;
  ~uncancellable() { pthread_setcancelstate(before_, nullptr); }

  // Ends the thread here if it has a pending cancellation request.
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
