#include "libc/libc_file.hpp"

#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "files/budgets.hpp"
#include "files/open_file.hpp"
#include "forksight/abi/condition.hpp"

namespace forksight::libc {

namespace {

constexpr std::size_t kMostFileBytes = std::size_t{256} << 20U;
constexpr std::size_t kMostCode = 64;  // only this many bytes at the beginning of a function are searched

using CodeBytes = std::span<const std::byte>;

std::uint8_t byte_at(CodeBytes code, std::size_t at) { return static_cast<std::uint8_t>(code[at]); }

// Returns the address of the text that a function returns. The function must have the form: lea disp32(%rip), %rax;
// ret. An endbr64 may come before these instructions.
std::optional<std::uint64_t> decode_returned_address(CodeBytes code, std::uint64_t address) {
  constexpr std::uint8_t kEndbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  const bool has_endbr = code.size() >= sizeof kEndbr && std::memcmp(code.data(), kEndbr, sizeof kEndbr) == 0;
  const std::size_t at = has_endbr ? sizeof kEndbr : 0;
  constexpr std::size_t kLength = 7;
  if (code.size() < at + kLength + 1) return std::nullopt;
  if (byte_at(code, at) != 0x48 || byte_at(code, at + 1) != 0x8d || byte_at(code, at + 2) != 0x05) return std::nullopt;
  if (byte_at(code, at + kLength) != 0xc3) return std::nullopt;
  std::int32_t offset = 0;
  std::memcpy(&offset, code.data() + at + 3, sizeof offset);
  return address + at + kLength + static_cast<std::uint64_t>(std::int64_t{offset});
}

// True if the code tests whether there are waiters. The number of waiters is in the bits above bit 2, so the test is
// shr $3, %reg or cmp $7, %reg.
bool has_test_for_waiters(CodeBytes code) {
  for (std::size_t i = 0; i + 3 <= code.size(); ++i) {
    const std::uint8_t form = byte_at(code, i + 1);
    if (byte_at(code, i) == 0xc1 && form >= 0xe8 && form <= 0xef && byte_at(code, i + 2) == 3) return true;
    if (byte_at(code, i) == 0x83 && form >= 0xf8 && byte_at(code, i + 2) == 7) return true;
  }
  return false;
}

// `code` is the beginning of pthread_cond_signal() or pthread_cond_broadcast(). Returns the kind of condition variable
// on which that libc function works. The libc function first reads the word __wrefs of the condition variable. The
// offset in the instruction that reads the word, mov disp8(%rdi), %reg, shows the kind.
abi::ConditionKind decode_first_word(CodeBytes code) {
  constexpr std::size_t kNear = 16;
  for (std::size_t i = 0; i + 3 <= code.size(); ++i) {
    if (byte_at(code, i) != 0x8b || (byte_at(code, i + 1) & 0xc7) != 0x47) continue;
    const CodeBytes rest = code.subspan(i + 3);
    if (!has_test_for_waiters(rest.first(std::min(rest.size(), kNear)))) return abi::ConditionKind::kUnknown;
    return abi::kind_by_wrefs(byte_at(code, i + 2));
  }
  return abi::ConditionKind::kUnknown;
}

class LibcReader {
 public:
  explicit LibcReader(CodeBytes file) : file_(file) {
    elf_version(EV_CURRENT);
    // elf_memory() does not write to the memory.
    elf_ = elf_memory(const_cast<char*>(reinterpret_cast<const char*>(file.data())), file.size());
  }
  ~LibcReader() { elf_end(elf_); }
  LibcReader(const LibcReader&) = delete;
  LibcReader& operator=(const LibcReader&) = delete;

  abi::Libc read() {
    abi::Libc found;
    GElf_Ehdr head;
    if (elf_ == nullptr || gelf_getehdr(elf_, &head) == nullptr || head.e_machine != EM_X86_64) return found;
    Elf_Scn* section = nullptr;
    while (left_ > 0 && (section = elf_nextscn(elf_, section)) != nullptr) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0) continue;
      if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) read_symbols(section, header);
    }
    found.version = by_function_.is_known() ? by_function_ : by_object_;
    if (signal_ == broadcast_) found.condition = signal_;
    return found;
  }

 private:
  void read_symbols(Elf_Scn* section, const GElf_Shdr& header) {
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (!has_closed_names(header.sh_link)) return;
    const std::size_t count = data == nullptr ? 0 : std::min(data->d_size / header.sh_entsize, left_);
    left_ -= count;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
      const char* const text = elf_strptr(elf_, header.sh_link, symbol.st_name);
      if (text != nullptr) note(text, symbol.st_value);
    }
  }

  // True if the table of names ends with a NUL. Without this NUL, libelf would search through the whole table for each
  // name.
  bool has_closed_names(std::uint32_t number) const {
    Elf_Data* const names = elf_getdata(elf_getscn(elf_, number), nullptr);
    return names != nullptr && names->d_size > 0 && static_cast<const char*>(names->d_buf)[names->d_size - 1] == '\0';
  }

  void note(std::string_view name, std::uint64_t address) {
    // In a symbol table for debuggers, the name contains the version.
    const std::string_view plain = name.substr(0, name.find('@'));
    if (plain == "gnu_get_libc_version") {
      const auto text = decode_returned_address(at(address, kMostCode), address);
      if (text) by_function_ = version_at(*text);
    } else if (plain == "nptl_version" || plain == "__nptl_version") {
      by_object_ = version_at(address);
    } else if (plain == "pthread_cond_signal") {
      note_kind(signal_, address);
    } else if (plain == "pthread_cond_broadcast") {
      note_kind(broadcast_, address);
    }
  }

  // glibc has two versions of pthread_cond_signal() and of pthread_cond_broadcast(). The older version, for programs
  // from before 2003, first reads a pointer. This pointer is not __wrefs, so the older version is not mistaken for the
  // newer version.
  void note_kind(abi::ConditionKind& kind, std::uint64_t address) const {
    const abi::ConditionKind found = decode_first_word(at(address, kMostCode));
    if (found != abi::ConditionKind::kUnknown) kind = found;
  }

  abi::Version version_at(std::uint64_t address) const {
    constexpr std::size_t kMostText = 16;
    const CodeBytes bytes = at(address, kMostText);
    char text[kMostText + 1] = {};
    // If there are no bytes, bytes.data() may be null. memcpy() does not allow null.
    if (!bytes.empty()) std::memcpy(text, bytes.data(), bytes.size());
    return abi::parse_version(text);
  }

  // Returns up to `count` bytes of the file that are mapped at `address`.
  CodeBytes at(std::uint64_t address, std::size_t count) const {
    std::size_t segments = 0;
    if (elf_getphdrnum(elf_, &segments) != 0) return {};
    for (std::size_t i = 0; i < segments; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf_, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
      if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
      const std::uint64_t within = address - segment.p_vaddr;
      const std::uint64_t left = segment.p_filesz - within;
      if (segment.p_offset > file_.size() || within >= file_.size() - segment.p_offset) return {};
      const CodeBytes rest = file_.subspan(segment.p_offset + within);
      return rest.first(std::min<std::uint64_t>({count, left, rest.size()}));
    }
    return {};
  }

  CodeBytes file_;
  Elf* elf_;
  // The number of symbols that may still be read. Sections may overlap, so this one limit is for all sections together.
  std::size_t left_ = files::kMaxSymbols;
  abi::Version by_function_;
  abi::Version by_object_;
  abi::ConditionKind signal_ = abi::ConditionKind::kUnknown;
  abi::ConditionKind broadcast_ = abi::ConditionKind::kUnknown;
};

std::vector<std::byte> read_all(int fd, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (files::read_at(fd, 0, bytes) != size) return {};
  return bytes;
}

using FileKey = std::tuple<dev_t, ino_t, off_t, std::int64_t>;

}  // namespace

bool is_libc_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"));
}

bool is_libpthread_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "libpthread.so.0" || (name.starts_with("libpthread-2.") && name.ends_with(".so"));
}

abi::Libc read_libc(std::span<const std::byte> elf) { return LibcReader(elf).read(); }

abi::Libc read_libc_file(const std::string& path) {
  static std::mutex mutex;
  static std::map<FileKey, abi::Libc> known;
  const files::Descriptor file = files::open_regular(path);
  abi::Libc found;
  struct stat status {};
  if (file && ::fstat(file.get(), &status) == 0 && static_cast<std::uint64_t>(status.st_size) <= kMostFileBytes) {
    const FileKey key{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec};
    const std::scoped_lock lock(mutex);
    const auto [at, is_new] = known.try_emplace(key);
    if (is_new) at->second = read_libc(read_all(file.get(), static_cast<std::size_t>(status.st_size)));
    found = at->second;
  }
  return found;
}

}  // namespace forksight::libc
