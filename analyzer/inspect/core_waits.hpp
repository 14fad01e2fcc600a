// What the threads of a core wait for, and who alone could end that, out of the core's memory. Everything in a core is
// of one instant: what sampler and proof of a live process look at twice for (watch/proof.hpp), it has by itself.
#pragma once

#include <vector>

#include "image/image.hpp"
#include "model/wait.hpp"

namespace forksight::inspect {

struct CoreWaits {
  std::vector<model::Wait> waits;  // of all threads. is_stuck: for good, whatever the other threads do
  bool all_for_good = false;       // no thread of the process can wake any other; a signal handler might
};

CoreWaits find_core_waits(const image::Image& core);

}  // namespace forksight::inspect
