#include "image/core_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "files/budgets.hpp"
#include "files/debug_budget.hpp"
#include "files/open_file.hpp"

namespace forksight::image {
namespace {

constexpr std::size_t kMaxNoteBytes = 128U << 20U;  // forksight keeps notes of 356 bytes for each thread
constexpr std::size_t kWindowBytes = 64U << 10U;
constexpr std::size_t kMaxSegments = 4U << 20U;  // vm.max_map_count is 65530, unless it was raised

struct Packing {
  std::string_view magic;
  const char* name;
  const char* command;
};
constexpr Packing kPackings[] = {
    {{"\x28\xb5\x2f\xfd", 4}, "zstd", "zstd -d"},
    {{"\x1f\x8b", 2}, "gzip", "gzip -dk"},
    {{"\xfd\x37\x7a\x58\x5a", 5}, "xz", "xz -dk"},
    {{"\x04\x22\x4d\x18", 4}, "lz4", "lz4 -d"},
    {{"BZh", 3}, "bzip2", "bzip2 -dk"},
};

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_AARCH64: return "aarch64";
    case EM_386: return "32-bit x86";
    case EM_ARM: return "32-bit ARM";
    case EM_PPC64: return "ppc64";
    case EM_S390: return "s390";
    case EM_RISCV: return "RISC-V";
    default: return fmt::format("another machine's (number {})", machine);
  }
}

// Returns the reason why forksight cannot read this file as a core; "" if it can.
std::string find_fault(const std::string& path, std::string_view head) {
  for (const Packing& packing : kPackings) {
    if (!head.starts_with(packing.magic)) continue;
    return fmt::format("{}: is packed with {}: unpack it first, `{} {}`", path, packing.name, packing.command, path);
  }
  Elf64_Ehdr header{};
  if (head.size() < EI_NIDENT || !head.starts_with(std::string_view(ELFMAG, SELFMAG))) {
    return fmt::format("{}: is not a core file", path);
  }
  std::memcpy(&header, head.data(), std::min(head.size(), sizeof header));
  // The machine field has the same offset in 32-bit files.
  if (head.size() >= offsetof(Elf64_Ehdr, e_version) && header.e_machine != EM_X86_64) {
    return fmt::format("{}: comes from a process of {} code; forksight reads only x86-64", path,
                       machine_name(header.e_machine));
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return fmt::format("{}: comes from a 32-bit process; forksight reads only 64-bit ones", path);
  }
  if (head.size() < sizeof header) return fmt::format("{}: is cut within its first bytes", path);
  if (header.e_type != ET_CORE) {
    return fmt::format("{}: is not a core file but {}: name the core, and give this file with --exe", path,
                       header.e_type == ET_EXEC || header.e_type == ET_DYN ? "a program or a library" : "an object");
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    return fmt::format("{}: is damaged: its segment headers have a wrong size", path);
  return "";
}

std::uint64_t padded(std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; }

// True for the notes that decode_notes() reads. Other notes have up to 12 KiB for each thread, for example vector
// registers.
bool is_needed(std::uint32_t type) {
  return type == NT_PRSTATUS || type == NT_PRPSINFO || type == NT_AUXV || type == NT_FILE;
}

}  // namespace

CoreFile::CoreFile(CoreFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      owner_(std::move(other.owner_)),
      missing_bytes_(other.missing_bytes_),
      segments_(std::move(other.segments_)),
      notes_(std::move(other.notes_)) {}

CoreFile::~CoreFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::size_t CoreFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size() && offset + done < size_) {
    const ssize_t got = ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::vector<Elf64_Phdr>> CoreFile::read_table(const std::string& path, const Elf64_Ehdr& header) const {
  std::uint64_t count = header.e_phnum;
  if (count == PN_XNUM) {
    Elf64_Shdr first{};
    const auto room = std::as_writable_bytes(std::span(&first, 1));
    if (read(header.e_shoff, room) != room.size()) {
      return Error{fmt::format("{}: is cut: the table of its segments is missing", path)};
    }
    count = first.sh_info;
  }
  const bool fits = header.e_phoff <= size_ && count <= (size_ - header.e_phoff) / sizeof(Elf64_Phdr);
  if (count == 0 || count > kMaxSegments || !fits) {
    return Error{fmt::format("{}: is cut or damaged: it does not contain the table of its segments (it has {} bytes)",
                             path, size_)};
  }
  std::vector<Elf64_Phdr> table(count);
  const auto room = std::as_writable_bytes(std::span(table));
  if (read(header.e_phoff, room) != room.size()) return Error{fmt::format("{}: cannot be read", path)};
  return table;
}

void CoreFile::add_notes(std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> window(kWindowBytes);  // the part of the segment that begins at `start`
  std::uint64_t start = 0;
  std::size_t there = 0;
  for (std::uint64_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
    Elf64_Nhdr head{};
    if (at < start || at + sizeof head > start + there) {
      start = at;
      there = read(offset + at, window);
      if (there < sizeof head) return;
      note_bytes_read_ += there;
    }
    if (++notes_visited_ > files::kMaxCoreNotes || note_bytes_read_ > files::kMaxCoreNoteBytes) {
      has_too_many_notes_ = true;
      return;
    }
    std::memcpy(&head, window.data() + (at - start), sizeof head);
    const std::uint64_t bytes = std::min(sizeof head + padded(head.n_namesz) + padded(head.n_descsz), size - at);
    const std::size_t before = notes_.size();
    const bool has_room = bytes <= kMaxNoteBytes - before;
    if (is_needed(head.n_type) && has_room) {
      const std::span<std::byte> in_window = std::span(window).first(there).subspan(at - start);
      if (bytes <= in_window.size()) {
        notes_.insert(notes_.end(), in_window.begin(), in_window.begin() + static_cast<std::ptrdiff_t>(bytes));
      } else {
        notes_.resize(before + bytes);
        notes_.resize(before + read(offset + at, std::span(notes_).subspan(before)));
      }
    }
    // Without this thread, all threads could seem to wait.
    if (head.n_type == NT_PRSTATUS && !has_room) has_too_many_threads_ = true;
    at += bytes;
  }
}

void CoreFile::add(const Elf64_Phdr& entry) {
  const std::uint64_t there =
      entry.p_offset >= size_ ? 0 : std::min<std::uint64_t>(entry.p_filesz, size_ - entry.p_offset);
  missing_bytes_ += std::min(entry.p_filesz - there, std::uint64_t{1} << 48U);
  if (entry.p_type == PT_NOTE) add_notes(entry.p_offset, there);
  const std::uint64_t end = entry.p_vaddr + entry.p_memsz;
  if (entry.p_type != PT_LOAD || end <= entry.p_vaddr) return;
  segments_.push_back({entry.p_vaddr, end, std::min(there, entry.p_memsz), entry.p_offset, entry.p_flags});
}

Result<CoreFile> CoreFile::open(const std::string& path) {
  files::Descriptor opened = files::open_regular(path);
  if (!opened) return Error{fmt::format("{}: cannot be read ({})", path, files::reason_of(errno))};
  const int fd = opened.release();
  CoreFile file(fd);
  struct stat status {};
  if (::fstat(fd, &status) == 0) {
    file.size_ = static_cast<std::uint64_t>(status.st_size);
    file.owner_ = {status.st_uid, status.st_gid, {}};
  }
  Elf64_Ehdr header{};
  const std::size_t got = file.read(0, std::as_writable_bytes(std::span(&header, 1)));
  std::string head(got, '\0');
  std::memcpy(head.data(), &header, got);
  if (got == 0) return Error{fmt::format("{}: is empty", path)};
  if (std::string fault = find_fault(path, head); !fault.empty()) return Error{std::move(fault)};

  const auto table = file.read_table(path, header);
  if (!table) return Error{table.error()};
  for (const Elf64_Phdr& entry : table.value()) file.add(entry);
  if (file.has_too_many_notes_) {
    return Error{fmt::format("{}: is damaged: it has more than {} notes, or more than {} of them", path,
                             files::kMaxCoreNotes, files::size_words(files::kMaxCoreNoteBytes))};
  }
  if (file.has_too_many_threads_) {
    return Error{fmt::format("{}: cannot be read: the notes about its threads take more than {}", path,
                             files::size_words(kMaxNoteBytes))};
  }
  std::stable_sort(file.segments_.begin(), file.segments_.end(),
                   [](const Segment& a, const Segment& b) { return a.start < b.start; });
  std::uint64_t end = 0;
  std::erase_if(file.segments_, [&](const Segment& segment) {
    if (segment.start < end) return true;
    end = segment.end;
    return false;
  });
  return file;
}

}  // namespace forksight::image
