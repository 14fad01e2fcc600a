#include "files/own_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace forksight::files {
namespace {

// The numbers of /proc/self/statm, in pages. proc(5) describes them.
using Statm = std::array<std::uint64_t, 7>;
constexpr std::size_t kResident = 1;
constexpr std::size_t kShared = 2;  // the resident pages of files
constexpr std::size_t kData = 5;

std::optional<Statm> read_statm() {
  static const int kFile = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  std::array<char, 256> text{};
  const ssize_t size = kFile < 0 ? -1 : ::pread(kFile, text.data(), text.size() - 1, 0);
  if (size <= 0) return std::nullopt;
  Statm numbers{};
  const char* at = text.data();
  for (std::uint64_t& number : numbers) {
    char* end = nullptr;
    number = std::strtoull(at, &end, 10);
    if (end == at) return std::nullopt;
    at = end;
  }
  return numbers;
}

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

std::optional<std::uint64_t> data_bytes() {
  const auto statm = read_statm();
  if (!statm) return std::nullopt;
  return (*statm)[kData] * page_bytes();
}

std::optional<std::uint64_t> written_bytes() {
  const auto statm = read_statm();
  if (!statm || (*statm)[kShared] > (*statm)[kResident]) return std::nullopt;
  return ((*statm)[kResident] - (*statm)[kShared]) * page_bytes();
}

}  // namespace forksight::files
