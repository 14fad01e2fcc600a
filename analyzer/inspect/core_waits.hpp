// Reads from the memory of a core what its threads wait for, and which threads could end these waits. A core shows one
// instant. So the proof needs no second round of samples, unlike the proof about a living process (watch/proof.hpp).
#pragma once

#include <vector>

#include "image/image.hpp"
#include "model/wait.hpp"

namespace forksight::inspect {

struct CoreWaits {
  // The waits of all threads. Wait::is_stuck is set if the wait never ends, whatever other threads do.
  std::vector<model::Wait> waits;
  // True if no thread of the process can wake another one. A signal handler still could.
  bool all_for_good = false;
};

CoreWaits find_core_waits(const image::Image& core);

}  // namespace forksight::inspect
