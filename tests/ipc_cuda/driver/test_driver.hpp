// A test driver: a libcuda.so.1 that needs no device, for tests of memory that processes share. The memory of its
// devices is in memfds, so each process that opens a handle sees the bytes. Streams and events run on a thread of their
// own. The driver keeps to the rules that NVIDIA documents, and to the strictest one if editions differ. It answers as
// documented. If a program does something that is documented as undefined, the driver prints a sentence and ends the
// process. The driver names its device "forksight test driver".
//
// Two environment variables control the driver. CUDA_VISIBLE_DEVICES is a list of 0 and 1. FORKSIGHT_TEST_DRIVER_LACKS
// is a list of numbers of attributes whose value is to be 0.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
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

// Finds the bytes at a device address, if the program may use all of them. Otherwise returns the driver's answer. Ends
// the process by misuse() if the use is undefined.
int find_memory(cu_address at, std::size_t bytes, char*& memory);

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
