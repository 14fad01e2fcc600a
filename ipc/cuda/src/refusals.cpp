#include "refusals.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "process.hpp"

namespace forksight::ipc_cuda::detail {
namespace {

// The last process in which CUDA was found initialised. A forked child inherits this value with the memory.
std::atomic<pid_t> g_initialised_in{0};

std::string environment_of(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string text_of(const char* path) {
  std::FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return {};
  std::array<char, 512> text{};
  const std::size_t got = std::fread(text.data(), 1, text.size() - 1, file);
  std::fclose(file);
  return std::string(text.data(), got);
}

// True if the driver's descriptors are open. A forked child inherits them, and an exec closes them.
bool has_device_open() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* const entry = readdir(folder)) {
    std::array<char, 32> target{};
    const ssize_t length = readlinkat(dirfd(folder), entry->d_name, target.data(), target.size());
    found = found || (length > 0 &&
                      std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with("/dev/nvidia"));
  }
  closedir(folder);
  return found;
}

std::string written(const cu_uuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    std::array<char, 4> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex.data();
  }
  return text;
}

}  // namespace

surroundings surroundings::here() {
  std::string mps = environment_of("CUDA_MPS_PIPE_DIRECTORY");
  // The default folder of the MPS daemon, and a FIFO that the daemon makes there ("Multi-Process Service", section
  // 4.2).
  if (mps.empty() && access("/tmp/nvidia-mps/control", F_OK) == 0) mps = "/tmp/nvidia-mps";
  return {text_of("/proc/version"), mps, environment_of("CUDA_VISIBLE_DEVICES"), ipc::detail::own_pid_namespace()};
}

std::optional<error> refuse_platform(const surroundings& where) {
  std::string kernel = where.kernel;
  std::transform(kernel.begin(), kernel.end(), kernel.begin(), [](unsigned char c) { return std::tolower(c); });
  if (kernel.find("microsoft") != std::string::npos) {
    return failure(
        errc::unsupported,
        "CUDA: this is WSL (/proc/version), where the driver cannot share memory between processes: copy through a "
        "queue of host memory instead");
  }
  return std::nullopt;
}

std::optional<error> refuse_import(const surroundings& where, const facts& of) {
  if (of.kind != memory::legacy || of.pid_namespace == where.pid_namespace) return std::nullopt;
  return failure(errc::other_namespace,
                 "CUDA: the pool belongs to process %u, which is in another pid namespace. A legacy handle works only "
                 "in the pid namespace of its maker: create the pool with memory::vmm_fd, or start both containers in "
                 "one pid namespace (docker: --pid)",
                 of.pid);
}

std::optional<error> refuse_uninitialised(const driver& api) {
  int count = 0;
  const int answer = api.device_count(&count);
  if (answer == kSuccess) {
    g_initialised_in.store(getpid(), std::memory_order_relaxed);
    return std::nullopt;
  }
  if (answer == kStubLibrary) {
    return failure(errc::no_driver,
                   "CUDA: the libcuda.so.1 that was found is the toolkit's stub, not a driver: remove the stub's "
                   "folder from LD_LIBRARY_PATH");
  }
  if (answer != kNotInitialized) return failed_call(api, answer, "cuDeviceGetCount", "CUDA: asking for devices");
  const pid_t before = g_initialised_in.load(std::memory_order_relaxed);
  if ((before != 0 && before != getpid()) || has_device_open()) {
    error why = failure(
        errc::initialised_in_parent,
        "CUDA: %s had initialised CUDA before it forked this process, and CUDA does not work in a forked child: "
        "start the child by exec (multiprocessing: \"spawn\"), or initialise CUDA only after the fork",
        before != 0 ? ("process " + std::to_string(before)).c_str() : "the parent, or an earlier ancestor,");
    why.pid = static_cast<std::uint32_t>(before);
    return why;
  }
  return failure(errc::not_initialised,
                 "CUDA: this process has not initialised CUDA: first call cuInit(0), or any function of the CUDA "
                 "runtime that needs a device");
}

std::optional<error> refuse_device(const driver& api, cu_device device, memory kind, const surroundings& where) {
  int is_served = 0;
  const bool is_known = api.device_attribute(&is_served, kAttributeMps, device) == kSuccess;
  if (is_known ? is_served != 0 : !where.mps_pipe.empty()) {
    return failure(
        errc::unsupported,
        "CUDA: this process is a client of MPS%s, and with MPS the death of one client can end others: end the MPS "
        "daemon, or start the processes that share buffers with CUDA_MPS_PIPE_DIRECTORY set to an empty folder",
        where.mps_pipe.empty() ? "" : (" (its folder is " + where.mps_pipe + ")").c_str());
  }
  if (kind == memory::legacy) return std::nullopt;
  struct need {
    int attribute;
    const char* what;
  };
  const need needs[] = {
      {kAttributeVmm, "virtual memory management, which memory::vmm_fd needs"},
      {kAttributePosixFd, "memory behind a descriptor, which memory::vmm_fd needs"},
  };
  for (const need& one : needs) {
    int value = 0;
    // A driver that is too old to know an attribute says nothing about the device, so the device is not refused.
    if (api.device_attribute(&value, one.attribute, device) != kSuccess || value != 0) continue;
    return failure(errc::unsupported, "CUDA: device %d does not support %s (attribute %d): use memory::legacy", device,
                   one.what, one.attribute);
  }
  return std::nullopt;
}

result<cu_device> find_device(const driver& api, const cu_uuid& uuid, const surroundings& where) {
  int count = 0;
  if (const int answer = api.device_count(&count); answer != kSuccess) {
    return failed_call(api, answer, "cuDeviceGetCount", "CUDA: asking for devices");
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cu_device device = 0;
    cu_uuid its{};
    if (api.device_get(&device, ordinal) != kSuccess || api.device_uuid(&its, device) != kSuccess) continue;
    if (std::memcmp(&its, &uuid, sizeof its) == 0) return device;
  }
  return failure(errc::no_device,
                 "CUDA: the pool is on device %s, which is not among the %d devices that this process sees "
                 "(CUDA_VISIBLE_DEVICES is %s): make it visible here, too; its number may differ",
                 written(uuid).c_str(), count, where.visible.empty() ? "not set" : where.visible.c_str());
}

}  // namespace forksight::ipc_cuda::detail
