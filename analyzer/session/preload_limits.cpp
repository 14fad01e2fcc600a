#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "session/preload.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxInterpreters = 4;  // the kernel's limit for scripts whose interpreter is a script
constexpr std::size_t kMaxProgramHeaders = 256;

class File {
 public:
  explicit File(const fs::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&&) = delete;
  std::size_t read(void* out, std::size_t bytes, std::uint64_t offset) const {
    const ssize_t got = fd_ < 0 ? -1 : ::pread(fd_, out, bytes, static_cast<off_t>(offset));
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Returns the path of the program's loader. "": the program has no loader. nullopt: the loader is not known, because
// the file is malformed.
std::optional<std::string> find_loader(const File& file, const Elf64_Ehdr& header) {
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxProgramHeaders) return std::nullopt;
  for (std::size_t index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment;
    if (file.read(&segment, sizeof segment, header.e_phoff + index * sizeof segment) != sizeof segment) {
      return std::nullopt;
    }
    if (segment.p_type != PT_INTERP) continue;
    std::array<char, 256> path{};
    const std::size_t got = file.read(path.data(), std::min(path.size() - 1, segment.p_filesz), segment.p_offset);
    const std::size_t length = ::strnlen(path.data(), got);
    if (length == 0) return std::nullopt;
    return std::string(path.data(), length);
  }
  return std::string();
}

bool gains_rights(const fs::path& program) {
  struct stat status {};
  if (::stat(program.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid()) return true;
  return ::geteuid() != 0 && ::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
}

// Returns the interpreter that a "#!" line names; "" if there is no such line.
std::string find_interpreter(std::string_view head) {
  if (!head.starts_with("#!")) return "";
  head.remove_prefix(2);
  head = head.substr(0, head.find('\n'));
  const std::size_t start = head.find_first_not_of(" \t");
  if (start == std::string_view::npos) return "";
  head.remove_prefix(start);
  return std::string(head.substr(0, head.find_first_of(" \t")));
}

// The program that the kernel starts, and its ELF header. For a script, the program is the interpreter. If a file has
// neither a "#!" line nor a whole ELF header, there is no Program: the kernel cannot start the file, and a shell will
// run it.
struct Program {
  fs::path path;
  File file;
  Elf64_Ehdr header;
};

std::optional<Program> find_program(const fs::path& given) {
  fs::path path = given;
  for (int depth = 0; depth <= kMaxInterpreters; ++depth) {
    Program program{path, File(path), {}};
    if (!program.file.is_open()) return std::nullopt;
    std::array<char, 256> head{};
    const std::size_t got = program.file.read(head.data(), head.size(), 0);
    if (std::string interpreter = find_interpreter({head.data(), got}); !interpreter.empty()) {
      path = std::move(interpreter);
      continue;
    }
    if (got < sizeof program.header || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return std::nullopt;
    std::memcpy(&program.header, head.data(), sizeof program.header);
    return program;
  }
  return std::nullopt;
}

bool is_x86_64(const Elf64_Ehdr& header) {
  return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64;
}

}  // namespace

std::vector<std::string> find_preload_limits(const fs::path& given) {
  const auto program = find_program(given);
  if (!program) return {};
  const std::string path = program->path.string();
  if (!is_x86_64(program->header)) {
    return {
        fmt::format("{} is not an x86-64 program: the loader refuses to load the shim and prints an error; forks and "
                    "locks were not seen",
                    path)};
  }
  const auto loader = find_loader(program->file, program->header);
  if (loader && loader->empty()) {
    return {fmt::format("{} is statically linked: the shim is not loaded into it; forks and locks were not seen", path)};
  }
  if (gains_rights(program->path)) {
    return {
        fmt::format("{} runs with the rights of another user: the loader ignores the shim there; forks and "
                    "locks were not seen",
                    path)};
  }
  return {};
}

std::optional<std::string> find_other_libc(const fs::path& given) {
  const auto program = find_program(given);
  if (!program || !is_x86_64(program->header)) return std::nullopt;
  const auto loader = find_loader(program->file, program->header);
  if (!loader || !fs::path(*loader).filename().string().starts_with("ld-musl")) return std::nullopt;
  return fmt::format("{} runs on musl: the shim needs glibc and was left out, so forks and locks were not seen",
                     program->path.string());
}

}  // namespace forksight
