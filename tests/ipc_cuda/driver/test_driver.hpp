// A test driver: a libcuda.so.1 that needs no device, for tests of memory that processes share. The memory of its
// devices is in memfds, so each process that opens a handle sees the bytes. A thread of the driver executes the
// streams. The driver follows the rules that NVIDIA documents. If editions of the documentation differ, it follows the
// strictest rule. If a program does something that is documented as undefined, the driver prints a sentence and ends
// the process. The driver names its device "forksight test driver".
//
// This driver also follows some rules that are not documented. They were observed with driver 580.159 of an H200. Some
// calls fail during a capture. A copy into pageable memory waits. A write to read-only memory fails.
//
// Environment variables control the driver. CUDA_VISIBLE_DEVICES is a list of 0 and 1. FORKSIGHT_TEST_DRIVER_LACKS is a
// list of numbers of attributes whose value is to be 0. FORKSIGHT_TEST_DRIVER_MPS is the value of the attribute for
// MPS. Without this variable, the driver behaves like an old one that does not know the attribute.
// FORKSIGHT_TEST_DRIVER_FAILS is the name of a function that fails with CUDA_ERROR_OUT_OF_MEMORY; only
// cuStreamWaitValue32 can do that. FORKSIGHT_TEST_DRIVER_KILLS is the name of a function that kills the process; only
// cuEventRecord can do that.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "driver_types.hpp"

namespace forksight::test_driver {

using namespace ipc_cuda::detail;

#define FORKSIGHT_CUDA_FUNCTION(member, symbol, parameters) \
  extern "C" __attribute__((visibility("default"))) int symbol parameters;
#include "driver_functions.def"
#define FORKSIGHT_CUDA_FUNCTION(member, symbol, parameters) \
  extern "C" __attribute__((visibility("default"))) int symbol parameters;
#include "program_functions.def"

constexpr int kDevices = 2;

// Guards all state of this driver. A forked child never takes the lock: the driver refuses the child's calls before it
// would take the lock.
extern std::mutex& g_lock;
extern std::atomic<pid_t> g_initialised_in;

[[noreturn]] void misuse(const std::string& what);
bool lacks(int attribute);
bool fails(const char* function);
void may_kill(const char* function);
// Returns the current context of the calling thread, or null.
cu_context current();
int device_of(cu_context context);

// A process, known by its pid and its start time.
struct peer {
  std::uint32_t pid;
  std::uint32_t start;
  static peer self();
  bool is_alive() const;
};

enum class use { read, write };
// Memory that a step of a stream uses. As long as `held` exists, the memory must not be unmapped.
struct used_memory {
  char* at = nullptr;
  std::shared_ptr<int> held;
};
// Finds the bytes at a device address, if the program may use all of them as `how` says. Otherwise returns the error of
// the driver's function. Ends the process by misuse() if the use is undefined.
int find_memory(cu_address at, std::size_t bytes, use how, used_memory& memory);
// True for memory of cuMemAllocHost(). Only a copy into such memory is asynchronous.
bool is_pinned(const void* memory, std::size_t bytes);
// Called by functions that are not allowed during a capture. Invalidates the captures whose mode forbids this thread
// such calls. Returns true if a capture was invalidated.
bool ends_captures();

// Waits until `done` returns true. Holds the lock while `done` runs. Executes the steps of all streams meanwhile.
void wait_until(const std::function<bool()>& done);

// Makes a memfd with this name and size. Returns its descriptor, or -1.
int make_file(const char* name, std::size_t bytes);
// Opens the file of a descriptor of another process. Returns -1 if the process has gone or has closed the descriptor.
int open_of_process(std::uint32_t pid, int fd);

#define REQUIRE(condition, otherwise)   \
  do {                                  \
    if (!(condition)) return otherwise; \
  } while (0)
#define REQUIRE_INIT() REQUIRE(g_initialised_in == getpid(), kNotInitialized)
#define REQUIRE_CONTEXT()                           \
  do {                                              \
    REQUIRE_INIT();                                 \
    REQUIRE(current() != nullptr, kInvalidContext); \
  } while (0)

}  // namespace forksight::test_driver
