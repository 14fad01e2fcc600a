// A test driver: a libcuda.so.1 without a device, for the sharing of memory between processes. The memory of its
// devices is memfds, so whoever opens a handle sees the bytes; streams and events run on a thread of their own. It
// keeps to the rules that NVIDIA documents, the strictest where editions differ, and answers as documented; what is
// documented as undefined ends the process, with a sentence. cuDeviceGetName says what it is.
//
// Driven by the environment: CUDA_VISIBLE_DEVICES, a list of 0 and 1, and FORKSIGHT_TEST_DRIVER_LACKS, a list of
// numbers of attributes that are 0.
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

// Guards all state of this driver. A forked child never takes it: the driver refuses the child before that.
extern std::mutex& g_lock;
extern std::atomic<pid_t> g_initialised_in;

[[noreturn]] void misuse(const std::string& what);
bool lacks(int attribute);
// The context of the calling thread, or null.
cu_context current();
int device_of(cu_context context);

// Another process, by pid and start time, in a word.
struct peer {
  std::uint32_t pid;
  std::uint32_t start;
  static peer self();
  bool is_alive() const;
};

// Bytes at a device address, if all of them may be touched; else the answer. What is undefined to touch is misuse.
int find_memory(cu_address at, std::size_t bytes, char*& memory);

// A new memfd by that name and its size, or -1.
int make_file(const char* name, std::size_t bytes);
// The descriptor of another process, or -1: it has gone or has closed it.
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
