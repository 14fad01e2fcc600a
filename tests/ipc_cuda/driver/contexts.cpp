// Initialisation, devices and contexts of the test driver.
#include <fcntl.h>
#include <sys/mman.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "test_driver.hpp"

struct CUctx_st {
  int device;
  unsigned retained;
};

namespace forksight::test_driver {

// The lock is never destroyed, because threads of the program may call the driver while the program ends.
std::mutex& g_lock = *new std::mutex;
std::atomic<pid_t> g_initialised_in{0};

namespace {

CUctx_st g_primary[kDevices] = {{0, 0}, {1, 0}};
std::vector<int>& g_visible = *new std::vector<int>;
thread_local std::vector<cu_context> t_contexts;

std::vector<int> numbers_of(const char* name, const char* otherwise) {
  const char* const text = std::getenv(name);
  std::istringstream in(text != nullptr ? text : otherwise);
  std::vector<int> found;
  for (std::string word; std::getline(in, word, ',');) found.push_back(std::atoi(word.c_str()));
  return found;
}

bool is_device(cu_device device) { return device >= 0 && device < static_cast<int>(g_visible.size()); }

// Returns the start time of a process, which is field 22 of /proc/PID/stat. 0: the process has gone, or is a zombie.
std::uint32_t start_of(std::uint32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  char text[1024] = {};
  const std::size_t got = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const char* const end = got != 0 ? std::strrchr(text, ')') : nullptr;
  if (end == nullptr || end[2] == 'Z' || end[2] == 'X') return 0;
  std::istringstream in(end + 2);
  std::string word;
  for (int field = 3; field <= 22; ++field) in >> word;
  return static_cast<std::uint32_t>(std::strtoull(word.c_str(), nullptr, 10));
}

}  // namespace

void misuse(const std::string& what) {
  std::fprintf(stderr, "forksight test driver: undefined: %s\n", what.c_str());
  std::abort();
}

bool lacks(int attribute) {
  for (const int one : numbers_of("FORKSIGHT_TEST_DRIVER_LACKS", "")) {
    if (one == attribute) return true;
  }
  return false;
}

bool fails(const char* function) {
  const char* const one = std::getenv("FORKSIGHT_TEST_DRIVER_FAILS");
  return one != nullptr && std::strcmp(one, function) == 0;
}

void may_kill(const char* function) {
  const char* const one = std::getenv("FORKSIGHT_TEST_DRIVER_KILLS");
  if (one != nullptr && std::strcmp(one, function) == 0) kill(getpid(), SIGKILL);
}

cu_context current() { return t_contexts.empty() ? nullptr : t_contexts.back(); }
int device_of(cu_context context) { return context->device; }

peer peer::self() {
  const auto pid = static_cast<std::uint32_t>(getpid());
  return {pid, start_of(pid)};
}
bool peer::is_alive() const { return start_of(pid) == start && start != 0; }

int make_file(const char* name, std::size_t bytes) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

int open_of_process(std::uint32_t pid, int fd) {
  return open(("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC);
}

int cuInit(unsigned flags) {
  REQUIRE(flags == 0, kInvalidValue);
  REQUIRE(g_initialised_in == 0 || g_initialised_in == getpid(), kNotInitialized);
  const std::lock_guard held(g_lock);
  if (g_initialised_in == 0) {
    for (const int one : numbers_of("CUDA_VISIBLE_DEVICES", "0,1")) {
      // Like the real driver, this driver ignores the rest of the list after a number that is no device.
      if (one < 0 || one >= kDevices) break;
      g_visible.push_back(one);
    }
  }
  g_initialised_in = getpid();
  return kSuccess;
}

int cuDriverGetVersion(int* version) {
  REQUIRE(version != nullptr, kInvalidValue);
  *version = 12020;
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  REQUIRE_INIT();
  REQUIRE(count != nullptr, kInvalidValue);
  *count = static_cast<int>(g_visible.size());
  return kSuccess;
}

int cuDeviceGet(cu_device* device, int ordinal) {
  REQUIRE_INIT();
  REQUIRE(device != nullptr, kInvalidValue);
  REQUIRE(is_device(ordinal), kInvalidDevice);
  *device = ordinal;
  return kSuccess;
}

int cuDeviceGetName(char* name, int bytes, cu_device device) {
  REQUIRE_INIT();
  REQUIRE(name != nullptr && bytes > 0, kInvalidValue);
  REQUIRE(is_device(device), kInvalidDevice);
  std::snprintf(name, static_cast<std::size_t>(bytes), "forksight test driver");
  return kSuccess;
}

int cuDeviceGetUuid_v2(cu_uuid* uuid, cu_device device) {
  REQUIRE_INIT();
  REQUIRE(uuid != nullptr, kInvalidValue);
  REQUIRE(is_device(device), kInvalidDevice);
  std::memset(uuid->bytes, 0x5f, sizeof uuid->bytes);
  uuid->bytes[15] = static_cast<char>(g_visible[static_cast<std::size_t>(device)]);
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, cu_device device) {
  REQUIRE_INIT();
  REQUIRE(value != nullptr, kInvalidValue);
  REQUIRE(is_device(device), kInvalidDevice);
  if (attribute == kAttributeMps) {
    const char* const mps = std::getenv("FORKSIGHT_TEST_DRIVER_MPS");
    REQUIRE(mps != nullptr, kInvalidValue);
    *value = std::atoi(mps);
    return kSuccess;
  }
  REQUIRE(attribute == kAttributeVmm || attribute == kAttributePosixFd, kInvalidValue);
  *value = lacks(attribute) ? 0 : 1;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(cu_context* context, cu_device device) {
  REQUIRE_INIT();
  REQUIRE(context != nullptr, kInvalidValue);
  REQUIRE(is_device(device), kInvalidDevice);
  const std::lock_guard held(g_lock);
  *context = &g_primary[g_visible[static_cast<std::size_t>(device)]];
  ++(*context)->retained;
  return kSuccess;
}

int cuDevicePrimaryCtxRelease_v2(cu_device device) {
  REQUIRE_INIT();
  REQUIRE(is_device(device), kInvalidDevice);
  const std::lock_guard held(g_lock);
  CUctx_st& context = g_primary[g_visible[static_cast<std::size_t>(device)]];
  REQUIRE(context.retained > 0, kInvalidContext);
  --context.retained;
  return kSuccess;
}

int cuCtxPushCurrent_v2(cu_context context) {
  REQUIRE_INIT();
  REQUIRE(context != nullptr && context->retained > 0, kInvalidContext);
  t_contexts.push_back(context);
  return kSuccess;
}

int cuCtxPopCurrent_v2(cu_context* context) {
  REQUIRE_CONTEXT();
  if (context != nullptr) *context = t_contexts.back();
  t_contexts.pop_back();
  return kSuccess;
}

int cuCtxSetCurrent(cu_context context) {
  REQUIRE_INIT();
  if (!t_contexts.empty()) t_contexts.pop_back();
  if (context != nullptr) t_contexts.push_back(context);
  return kSuccess;
}

int cuGetErrorName(int answer, const char** name) {
  REQUIRE(name != nullptr, kInvalidValue);
  switch (answer) {
    case kSuccess: *name = "CUDA_SUCCESS"; break;
    case kInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case kOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case kNotInitialized: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case kInvalidDevice: *name = "CUDA_ERROR_INVALID_DEVICE"; break;
    case kInvalidContext: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case kAlreadyMapped: *name = "CUDA_ERROR_ALREADY_MAPPED"; break;
    case kInvalidHandle: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    case kNotReady: *name = "CUDA_ERROR_NOT_READY"; break;
    case kNotSupported: *name = "CUDA_ERROR_NOT_SUPPORTED"; break;
    case kCaptureUnsupported: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; break;
    case kCaptureInvalidated: *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; break;
    default: *name = nullptr; return kInvalidValue;
  }
  return kSuccess;
}

}  // namespace forksight::test_driver
