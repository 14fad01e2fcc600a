// Lets a write beyond the limit of file sizes (ulimit -f) fail with EFBIG. Otherwise the signal SIGXFSZ would end
// forksight.
#pragma once

#include <csignal>

namespace forksight::files {

// While an object of this class exists, its thread blocks SIGXFSZ, which the kernel sends to the thread that writes. To
// ignore the signal would also affect other threads, and programs that they start. The destructor takes the signal,
// which would otherwise arrive when it is no longer blocked. It must run in the same thread as the constructor.
class HeldSizeSignal {
 public:
  HeldSizeSignal();
  HeldSizeSignal(const HeldSizeSignal&) = delete;
  HeldSizeSignal& operator=(const HeldSizeSignal&) = delete;
  ~HeldSizeSignal();

 private:
  sigset_t before_;  // the signals that the thread blocked before
  bool was_pending_;
};

}  // namespace forksight::files
