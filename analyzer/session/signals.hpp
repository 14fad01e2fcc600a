// The signals of a process that waits for another one. They are read from a descriptor, in order, and never handled by
// a handler.
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
  // Blocks the signals to be read. Must come before CMD is started, so that CMD's end is not missed.
  RunSignals();
  ~RunSignals();
  RunSignals(const RunSignals&) = delete;
  RunSignals& operator=(const RunSignals&) = delete;

  // The signal state that CMD gets back.
  const proc::SignalState& before() const { return before_; }

  // The next signal; nothing if `until` has come.
  std::optional<signalfd_siginfo> wait(std::chrono::steady_clock::time_point until) const;

 private:
  proc::SignalState before_{};
  int fd_ = -1;
};

// A signal by pid reaches whichever process has that pid now. So this first opens a descriptor of the process and then
// checks its identity.
void send_signal(const proc::ProcessKey& key, int signal);

}  // namespace forksight
