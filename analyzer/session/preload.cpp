#include "session/preload.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "proc/proc_fs.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOrderCheck = "verify_asan_link_order=";

}  // namespace

Result<fs::path> find_shim() {
  const auto self = proc::read_link("/proc/self/exe");
  if (!self) return Error{"cannot find libforksight.so: /proc/self/exe cannot be read"};
  const fs::path shim = (fs::path(*self).parent_path() / FORKSIGHT_SHIM_FROM_BIN).lexically_normal();
  if (::access(shim.c_str(), R_OK) != 0) {
    return Error{fmt::format("{}: {}; the shim belongs there: build or install forksight as a whole", shim.string(),
                             std::strerror(errno))};
  }
  return shim;
}

std::string preload_value(const fs::path& shim, const char* before) {
  if (before == nullptr || *before == '\0') return shim.string();
  return fmt::format("{}:{}", shim.string(), before);
}

std::string asan_options_value(const char* before) {
  // If an option is set twice, AddressSanitizer uses the last setting.
  if (before == nullptr || *before == '\0') return fmt::format("{}0", kOrderCheck);
  return fmt::format("{}0:{}", kOrderCheck, before);
}

std::optional<std::string> find_asan_limit(const char* options) {
  const std::string_view text = options != nullptr ? options : "";
  const std::size_t last = text.rfind(kOrderCheck);
  if (last == std::string_view::npos) return std::nullopt;
  const std::string_view value = text.substr(last + kOrderCheck.size());
  if (value.starts_with("0") || value.starts_with("n") || value.starts_with("f")) return std::nullopt;
  return fmt::format(
      "ASAN_OPTIONS has {}{}: a program that loads AddressSanitizer's runtime as a library does not "
      "start under the shim; leave that option out",
      kOrderCheck, value.substr(0, value.find_first_of(" ,:\n\t\r")));
}

}  // namespace forksight
