// What the threads of a core wait for, and who alone could end that, read from the core's memory. A core shows one
// instant, so it needs neither the sampler nor the two rounds of a live process (watch/proof.hpp).
#pragma once

#include <vector>

#include "image/image.hpp"
#include "model/wait.hpp"

namespace forksight::inspect {

struct CoreWaits {
  std::vector<model::Wait> waits;  // of all threads. is_stuck: for ever, whatever the other threads do
  bool all_for_good = false;       // no thread of the process can wake another one; a signal handler might
};

CoreWaits find_core_waits(const image::Image& core);

}  // namespace forksight::inspect
