#include "symbols/debug_files.hpp"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace forksight::symbols {
namespace {

// CRC-32 of the whole file, as .gnu_debuglink has it (polynomial 0xedb88320).
bool has_crc(int fd, GElf_Word expected) {
  std::vector<unsigned char> buffer(1U << 16U);
  std::uint32_t crc = 0xffffffff;
  off_t at = 0;
  for (;;) {
    const ssize_t got = pread(fd, buffer.data(), buffer.size(), at);
    if (got < 0) return false;
    if (got == 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      crc ^= buffer[static_cast<std::size_t>(i)];
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
    }
    at += got;
  }
  return ~crc == expected;
}

constexpr std::chrono::seconds kPatience{5};

std::atomic<bool> g_may_ask_servers = false;
std::atomic<bool> g_was_given_up = false;

bool may_ask_servers() {
  if (!g_may_ask_servers) return false;
  const char* const urls = std::getenv("DEBUGINFOD_URLS");
  return urls != nullptr && *urls != '\0';
}

// `request`: of a file, a descriptor or -1.
template <class Request>
int ask_servers(const Request& request) {
  const auto start = std::chrono::steady_clock::now();
  const int fd = request();
  if (fd < 0 && std::chrono::steady_clock::now() - start >= kPatience) {
    g_may_ask_servers = false;
    g_was_given_up = true;
  }
  return fd;
}

// On this machine, by the debug link.
int find_linked_file(Dwfl_Module* module, const char* file_name, const char* debuglink_file, GElf_Word debuglink_crc,
                     bool is_shared_part, char** debuginfo_file_name) {
  if (debuglink_file == nullptr || file_name == nullptr) return -1;

  const std::filesystem::path link(debuglink_file);
  std::vector<std::filesystem::path> candidates;
  if (link.is_absolute()) {
    candidates.push_back(link);
  } else {
    const std::filesystem::path folder = std::filesystem::path(file_name).parent_path();
    candidates = {folder / link, folder / ".debug" / link,
                  std::filesystem::path("/usr/lib/debug") / folder.relative_path() / link};
  }
  const unsigned char* bits = nullptr;
  GElf_Addr vaddr = 0;
  const int length = dwfl_module_build_id(module, &bits, &vaddr);
  for (const auto& candidate : candidates) {
    const int fd = open_regular_file(candidate.c_str());
    if (fd < 0) continue;
    const bool fits = is_shared_part || (length > 0 ? has_build_id(fd, {bits, static_cast<std::size_t>(length)})
                                                    : has_crc(fd, debuglink_crc));
    if (fits) {
      *debuginfo_file_name = strdup(candidate.c_str());
      return fd;
    }
    close(fd);
  }
  return -1;
}

}  // namespace

void allow_debuginfod() {
  // Else 90 seconds, three times.
  ::setenv("DEBUGINFOD_TIMEOUT", "20", 0);
  ::setenv("DEBUGINFOD_RETRY_LIMIT", "1", 0);
  g_may_ask_servers = true;
}

std::string debuginfod_limit() {
  if (!g_was_given_up) return {};
  return "a server of DEBUGINFOD_URLS did not answer in time, and forksight did not ask it again: functions and lines "
         "may be missing";
}

int fetch_elf_file(std::span<const std::uint8_t> build_id) {
  if (!may_ask_servers() || build_id.empty()) return -1;
  static constexpr Dwfl_Callbacks kByBuildId = {dwfl_build_id_find_elf, dwfl_build_id_find_debuginfo, nullptr, nullptr};
  Dwfl* const session = dwfl_begin(&kByBuildId);
  if (session == nullptr) return -1;
  dwfl_report_begin(session);
  constexpr GElf_Addr kAnywhere = 0x10000;  // libdwfl wants addresses of the module and of its build-id
  Dwfl_Module* const module = dwfl_report_module(session, "wanted", kAnywhere, 2 * kAnywhere);
  int fd = -1;
  if (module != nullptr && dwfl_module_report_build_id(module, build_id.data(), build_id.size(), kAnywhere + 64) == 0) {
    char* file_name = nullptr;
    Elf* elf = nullptr;
    fd = ask_servers([&] { return dwfl_build_id_find_elf(module, nullptr, "wanted", kAnywhere, &file_name, &elf); });
    if (elf != nullptr) elf_end(elf);
    std::free(file_name);
  }
  dwfl_report_end(session, nullptr, nullptr);
  dwfl_end(session);
  return fd;
}

bool has_build_id(int fd, std::span<const std::uint8_t> build_id) {
  elf_version(EV_CURRENT);  // nobody else may have yet
  Elf* elf = elf_begin(fd, ELF_C_READ_MMAP, nullptr);
  if (elf == nullptr) return false;
  const void* found = nullptr;
  const ssize_t length = dwelf_elf_gnu_build_id(elf, &found);
  const bool same =
      length == static_cast<ssize_t>(build_id.size()) && std::memcmp(found, build_id.data(), build_id.size()) == 0;
  elf_end(elf);
  return same;
}

int open_regular_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

int find_debug_file(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base, const char* file_name,
                    const char* debuglink_file, GElf_Word debuglink_crc, char** debuginfo_file_name) {
  // A link with neither a checksum nor its own build-id to compare is the one to dwz's shared file.
  const bool is_shared_part = debuglink_file != nullptr && debuglink_crc == 0;
  if (!is_shared_part) {
    const int fd = dwfl_build_id_find_debuginfo(module, userdata, name, base, file_name, debuglink_file, debuglink_crc,
                                                debuginfo_file_name);
    if (fd >= 0) return fd;
  }
  const int fd =
      find_linked_file(module, file_name, debuglink_file, debuglink_crc, is_shared_part, debuginfo_file_name);
  if (fd >= 0 || is_shared_part || !may_ask_servers()) return fd;
  return ask_servers([&] {
    return dwfl_standard_find_debuginfo(module, userdata, name, base, file_name, debuglink_file, debuglink_crc,
                                        debuginfo_file_name);
  });
}

}  // namespace forksight::symbols
