// What is known not to work, found out before the driver is asked to do it: the driver's own answers to these are 3,
// 201, 801 or a crash, and name no reason.
#pragma once

#include <optional>
#include <string>

#include "card.hpp"
#include "driver.hpp"

namespace forksight::ipc_cuda::detail {

// Of this machine and process.
struct surroundings {
  std::string kernel;    // /proc/version
  std::string mps_pipe;  // CUDA_MPS_PIPE_DIRECTORY; empty: none
  std::string visible;   // CUDA_VISIBLE_DEVICES
  std::uint64_t pid_namespace = 0;

  static surroundings here();
};

// WSL and MPS.
std::optional<error> refuse_platform(const surroundings& where);
// A legacy pool of another pid namespace.
std::optional<error> refuse_import(const surroundings& where, const facts& of);
// CUDA in this process: initialised, by this very process.
std::optional<error> refuse_uninitialised(const driver& api);
std::optional<error> refuse_device(const driver& api, cu_device device, memory kind);
// The device with that UUID, whatever its number here.
result<cu_device> find_device(const driver& api, const cu_uuid& uuid, const surroundings& where);

}  // namespace forksight::ipc_cuda::detail
