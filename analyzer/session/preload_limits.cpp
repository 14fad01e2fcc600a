#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

#include "session/preload.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxInterpreters = 4;  // the kernel's limit
constexpr std::size_t kMaxProgramHeaders = 256;

class File {
 public:
  explicit File(const fs::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::size_t read(void* out, std::size_t bytes, std::uint64_t offset) const {
    const ssize_t got = fd_ < 0 ? -1 : ::pread(fd_, out, bytes, static_cast<off_t>(offset));
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool has_loader(const File& file, const Elf64_Ehdr& header) {
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxProgramHeaders) return true;
  for (std::size_t index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment;
    if (file.read(&segment, sizeof segment, header.e_phoff + index * sizeof segment) != sizeof segment) return true;
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

bool gains_rights(const fs::path& program) {
  struct stat status {};
  if (::stat(program.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid()) return true;
  return ::geteuid() != 0 && ::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
}

// The interpreter of a "#!" line; "" if there is none.
std::string find_interpreter(std::string_view head) {
  if (!head.starts_with("#!")) return "";
  head.remove_prefix(2);
  head = head.substr(0, head.find('\n'));
  const std::size_t start = head.find_first_not_of(" \t");
  if (start == std::string_view::npos) return "";
  head.remove_prefix(start);
  return std::string(head.substr(0, head.find_first_of(" \t")));
}

}  // namespace

std::vector<std::string> find_preload_limits(const fs::path& program) {
  fs::path path = program;
  for (int depth = 0; depth <= kMaxInterpreters; ++depth) {
    const File file(path);
    if (!file.is_open()) return {};
    std::array<char, 256> head{};
    const std::size_t got = file.read(head.data(), head.size(), 0);
    if (std::string interpreter = find_interpreter({head.data(), got}); !interpreter.empty()) {
      path = std::move(interpreter);
      continue;
    }
    Elf64_Ehdr header;
    // The file has neither a script's interpreter nor a complete ELF header: the shell will run it.
    if (got < sizeof header || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return {};
    std::memcpy(&header, head.data(), sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
      return {
          fmt::format("{} is no x86-64 program: the loader cannot take the shim into it, and says so in a line of "
                      "its own; forks and locks were not seen",
                      path.string())};
    }
    if (!has_loader(file, header)) {
      return {fmt::format("{} is statically linked: the shim is not loaded into it; forks and locks were not seen",
                          path.string())};
    }
    if (gains_rights(path)) {
      return {fmt::format(
          "{} runs with the rights of another user: the loader ignores the shim there; forks and locks were not seen",
          path.string())};
    }
    return {};
  }
  return {};
}

}  // namespace forksight
