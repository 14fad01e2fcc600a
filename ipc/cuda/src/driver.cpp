#include "driver.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace forksight::ipc_cuda {

const char* name_of(errc code) {
  switch (code) {
    case errc::queue: return "queue";
    case errc::driver: return "driver";
    case errc::no_driver: return "no_driver";
    case errc::not_initialised: return "not_initialised";
    case errc::initialised_in_parent: return "initialised_in_parent";
    case errc::used_after_fork: return "used_after_fork";
    case errc::no_device: return "no_device";
    case errc::unsupported: return "unsupported";
    case errc::other_namespace: return "other_namespace";
    case errc::in_use: return "in_use";
    case errc::producer_died: return "producer_died";
    case errc::bad_option: return "bad_option";
    case errc::untrusted: return "untrusted";
    case errc::capturing: return "capturing";
  }
  return "unknown";
}

namespace detail {
namespace {

std::atomic<const driver*> g_driver{nullptr};

__attribute__((format(printf, 1, 0))) std::string format_text(const char* format, va_list arguments) {
  std::array<char, 1024> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  return text.data();
}

}  // namespace

result<const driver*> driver::load() {
  if (const driver* const known = g_driver.load(std::memory_order_acquire)) return known;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return failure(errc::no_driver, "CUDA: no driver: %s", why != nullptr ? why : "libcuda.so.1 cannot be loaded");
  }
  // This object is never freed, because the driver stays loaded. Two threads may each make such an object at the same
  // time. This does no harm, because both objects have the same content.
  auto* const made = new driver;
  const char* missing = nullptr;
#define FORKSIGHT_CUDA_FUNCTION(member, symbol, parameters)                         \
  made->member = reinterpret_cast<decltype(made->member)>(dlsym(library, #symbol)); \
  if (made->member == nullptr) missing = #symbol;
#include "driver_functions.def"
  if (missing != nullptr) {
    delete made;
    return failure(errc::no_driver, "CUDA: this driver has no %s: a driver of CUDA 11.7 or later is needed", missing);
  }
  g_driver.store(made, std::memory_order_release);  // pairs with the load above
  return made;
}

error failure(errc code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error why;
  why.code = code;
  why.text = format_text(format, arguments);
  va_end(arguments);
  return why;
}

error failed_call(const driver& api, int answer, const char* function, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error why;
  why.driver = answer;
  why.text = format_text(format, arguments);
  va_end(arguments);
  const char* name = nullptr;
  if (api.error_name(answer, &name) != kSuccess || name == nullptr) name = "an error without a name";
  why.text += std::string(": ") + function + " answers " + std::to_string(answer) + ", " + name;
  return why;
}

error from_queue(const ipc::error& why) {
  error ours;
  ours.code = why.code == ipc::errc::used_after_fork ? errc::used_after_fork
              : why.code == ipc::errc::producer_died ? errc::producer_died
                                                     : errc::queue;
  ours.queue = why.code;
  ours.pid = why.pid;
  ours.text = why.text;
  return ours;
}

}  // namespace detail
}  // namespace forksight::ipc_cuda
