// Refuses uses of CUDA that are known not to work. The refusal comes before the driver is called. The driver would
// return error 3, 201 or 801, or crash, and would give no reason.
#pragma once

#include <optional>
#include <string>

#include "control_block.hpp"
#include "driver.hpp"

namespace forksight::ipc_cuda::detail {

// Facts about this machine and this process.
struct surroundings {
  std::string kernel;    // /proc/version
  std::string mps_pipe;  // folder of the MPS daemon: CUDA_MPS_PIPE_DIRECTORY or the default folder; empty: none
  std::string visible;   // CUDA_VISIBLE_DEVICES
  std::uint64_t pid_namespace = 0;

  static surroundings here();
};

// Refuses WSL.
std::optional<error> refuse_platform(const surroundings& where);
// Refuses a legacy pool of another pid namespace.
std::optional<error> refuse_import(const surroundings& where, const facts& of);
// Refuses a process in which CUDA is not initialised. Names the reason if CUDA was initialised in a process that forked
// this one.
std::optional<error> refuse_uninitialised(const driver& api);
// Refuses a client of MPS, and a device that lacks a feature that `kind` needs. The driver says whether MPS serves the
// device. If the driver is too old to say so, `where` decides: a process with a folder of the MPS daemon counts as a
// client of MPS.
std::optional<error> refuse_device(const driver& api, cu_device device, memory kind, const surroundings& where);
// Finds the device with that UUID. The number of the device may differ between this process and the creator.
result<cu_device> find_device(const driver& api, const cu_uuid& uuid, const surroundings& where);

}  // namespace forksight::ipc_cuda::detail
