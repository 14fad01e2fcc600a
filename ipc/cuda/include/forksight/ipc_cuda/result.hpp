// The reasons why an operation on a device's memory failed. If possible, the library finds an obstacle before it calls
// the driver. Then the error names the reason instead of only the driver's error number.
#pragma once

#include <cstdint>
#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc_cuda {

enum class errc : std::uint8_t {
  queue,                  // an error of the queue: error::queue says which one, for example timeout or closed
  driver,                 // the driver failed for another reason: see error::driver
  no_driver,              // there is no libcuda.so.1, or this library lacks a function that is needed
  not_initialised,        // cuInit() has not been called in this process
  initialised_in_parent,  // a process that had called cuInit() forked this process: CUDA does not work here
  used_after_fork,        // the pool, loan or message belongs to the parent process
  no_device,              // there is no such device, or this process cannot see the device
  unsupported,            // the device, WSL or MPS does not support this use
  other_namespace,        // memory::legacy does not work between pid namespaces
  in_use,                 // close(): a process still uses the memory; pid: the first such process, perhaps this one
  producer_died,          // pid: the pid of the creator
  bad_option,
  untrusted,  // the bytes received from the socket do not describe a pool
  capturing,  // the stream is being captured into a graph
};

// The enumerator's name, such as "producer_died". The text is static.
const char* name_of(errc code);

struct error {
  errc code = errc::driver;
  int driver = 0;                       // CUresult; 0: the driver was not called
  ipc::errc queue = ipc::errc::system;  // for errc::queue
  std::uint32_t pid = 0;                // 0: the error is not about a process
  std::string text;
};

template <class T>
using result = ipc::result<T, error>;

}  // namespace forksight::ipc_cuda
