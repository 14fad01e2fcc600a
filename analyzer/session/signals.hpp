// The signals of a process that waits for another one: taken off a descriptor, in order, never in a handler.
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
  // Blocks what is to be read. Before CMD is started, so that CMD's end is not missed.
  RunSignals();
  ~RunSignals();
  RunSignals(const RunSignals&) = delete;
  RunSignals& operator=(const RunSignals&) = delete;

  // What CMD gets back.
  const proc::SignalState& before() const { return before_; }

  // The next signal, or nothing when `until` has come.
  std::optional<signalfd_siginfo> wait(std::chrono::steady_clock::time_point until) const;

 private:
  proc::SignalState before_{};
  int fd_ = -1;
};

// Signals by pid hit whoever has it now: a descriptor of the process is taken first, then its identity is checked.
void send_signal(const proc::ProcessKey& key, int signal);

}  // namespace forksight
