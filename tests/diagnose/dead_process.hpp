// Makes processes that are proven to hang, and models that consist of given processes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/model.hpp"

namespace forksight {

inline model::Process dead_process(std::int32_t pid, std::vector<model::Wait> waits) {
  model::Process process;
  process.pid = pid;
  process.exe = "/opt/app";
  process.liveness = model::Liveness::kDead;
  process.stuck_for_ms = 1400;
  process.waits = std::move(waits);
  return process;
}

inline model::Model model_of(std::vector<model::Process> processes) {
  model::Model model;
  model.processes = std::move(processes);
  return model;
}

}  // namespace forksight
