// Why something with a device's memory could not be done: decided before the driver is asked wherever that is possible,
// so that the reason is told and not the driver's number for it.
#pragma once

#include <cstdint>
#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc_cuda {

enum class errc : std::uint8_t {
  queue,                  // the queue's error: error::queue says which, timeout or closed for instance
  driver,                 // the driver's answer that nothing foresaw: error::driver
  no_driver,              // no libcuda.so.1, or one without a function that is needed
  not_initialised,        // cuInit() has not been called in this process
  initialised_in_parent,  // a process that had called cuInit() forked this one: CUDA does not work in it
  used_after_fork,        // the pool, loan or message is the parent process'
  no_device,              // no such device, or it is not visible here
  unsupported,            // by the device, WSL or MPS
  other_namespace,        // memory::legacy between pid namespaces
  in_use,                 // close(): another process has the memory open; pid: the first of them
  producer_died,          // pid: of it
  bad_option,
  untrusted,  // what came over the socket is no pool
};

// "producer_died", ...: static.
const char* name_of(errc code);

struct error {
  errc code = errc::driver;
  int driver = 0;                       // CUresult; 0: the driver has answered nothing
  ipc::errc queue = ipc::errc::system;  // of errc::queue
  std::uint32_t pid = 0;                // 0: about nobody
  std::string text;
};

template <class T>
using result = ipc::result<T, error>;

}  // namespace forksight::ipc_cuda
