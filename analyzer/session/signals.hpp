// Receives the signals that forksight gets while it waits for CMD. RunSignals reads the signals from a descriptor, one
// after another, and uses no signal handler.
#pragma once

#include <sys/signalfd.h>

#include <chrono>
#include <optional>

#include "proc/launch.hpp"
#include "proc/proc_fs.hpp"
#include "watch/evidence.hpp"

namespace forksight {

class RunSignals {
 public:
  // Blocks SIGXFSZ. Then a write beyond the limit of file sizes (ulimit -f) fails, and does not end forksight. Make
  // this object before forksight writes anything.
  RunSignals();
  ~RunSignals();
  RunSignals(const RunSignals&) = delete;
  RunSignals& operator=(const RunSignals&) = delete;

  // Blocks the signals that wait() reads. Call it before CMD is started, so that CMD's end is not missed.
  void begin();

  // The signal state before this object changed it. CMD is started with that state.
  const proc::SignalState& before() const { return before_; }

  // Waits for the next signal; nullopt if no signal arrived before the time `until`.
  std::optional<signalfd_siginfo> wait(std::chrono::steady_clock::time_point until) const;

 private:
  proc::SignalState before_{};
  int fd_ = -1;
};

// Sends a signal, unless the process has ended. A signal that is sent by pid could reach another process that now has
// the pid. So this function first opens a descriptor of the process and then checks the start time of the process.
void send_signal(const proc::ProcessKey& key, int signal);

}  // namespace forksight
