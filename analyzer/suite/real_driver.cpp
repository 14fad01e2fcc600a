#include "suite/real_driver.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace forksight::suite {
namespace {

// The loader searches for the first name. In containers and in WSL the driver is at the other paths.
constexpr std::array kCandidates = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                    "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1"};
constexpr std::string_view kTestDriver = "forksight test driver";
constexpr int kAnswerLimitMs = 30'000;
constexpr char kGood = '+';

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

// Returns kGood and the path of the library, or the reason why the library cannot be used.
std::string ask_here(const char* candidate) {
  void* const library = ::dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return ::dlerror();
  const auto init = find<int (*)(unsigned)>(library, "cuInit");
  const auto count_devices = find<int (*)(int*)>(library, "cuDeviceGetCount");
  const auto name_device = find<int (*)(char*, int, int)>(library, "cuDeviceGetName");
  if (init == nullptr || count_devices == nullptr || name_device == nullptr) return "is not a CUDA driver";
  if (const int answer = init(0); answer != 0) return fmt::format("answers cuInit with {}", answer);
  int devices = 0;
  if (count_devices(&devices) != 0 || devices == 0) return "has no device";
  std::array<char, 256> name = {};
  if (name_device(name.data(), static_cast<int>(name.size()), 0) != 0) return "does not name its device";
  if (name.data() == kTestDriver) return "is the test driver";
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return ::dlerror();
  return kGood + std::string(map->l_name);
}

std::string ask(const char* candidate) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe for it";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string answer = ask_here(candidate);
    [[maybe_unused]] const ssize_t sent = ::write(ends[1], answer.data(), answer.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::array<char, 4096> buffer;
  pollfd polled = {ends[0], POLLIN, 0};
  const bool answers = pid > 0 && ::poll(&polled, 1, kAnswerLimitMs) == 1;
  const ssize_t got = answers ? ::read(ends[0], buffer.data(), buffer.size()) : 0;
  ::close(ends[0]);
  if (pid > 0) {
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : "does not answer";
}

}  // namespace

RealDriver find_real_driver() {
  RealDriver driver;
  for (const char* candidate : kCandidates) {
    if (std::string_view(candidate).starts_with('/') && ::access(candidate, R_OK) != 0) continue;
    const std::string answer = ask(candidate);
    if (answer.starts_with(kGood)) {
      driver.library = answer.substr(1);
      driver.reason.clear();
      return driver;
    }
    driver.reason += fmt::format("{}{}: {}", driver.reason.empty() ? "" : "; ", candidate, answer);
  }
  return driver;
}

}  // namespace forksight::suite
