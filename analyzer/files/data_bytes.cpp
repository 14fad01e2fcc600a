#include "files/data_bytes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace forksight::files {

// The sixth number in /proc/self/statm is this memory, in pages.
std::optional<std::uint64_t> data_bytes() {
  static const int kStatm = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  std::array<char, 128> text{};
  const ssize_t size = kStatm < 0 ? -1 : ::pread(kStatm, text.data(), text.size() - 1, 0);
  if (size <= 0) return std::nullopt;
  const char* at = text.data();
  constexpr int kField = 5;
  for (int field = 0; field < kField; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return std::nullopt;
    ++at;
  }
  return std::strtoull(at, nullptr, 10) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace forksight::files
