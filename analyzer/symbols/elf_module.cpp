#include "symbols/elf_module.hpp"

#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "symbols/debug_files.hpp"

namespace forksight::symbols {
namespace {

// The ELF file is handed over open: libdwfl never looks for one.
int find_no_elf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

// A file without a name that holds `bytes`; -1 with errno.
int open_bytes(const std::vector<std::byte>& bytes) {
  const int fd = memfd_create("forksight-module", MFD_CLOEXEC);
  if (fd < 0) return -1;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (put <= 0) {
      const int error = put < 0 ? errno : ENOSPC;
      close(fd);
      errno = error;
      return -1;
    }
    done += static_cast<std::size_t>(put);
  }
  return fd;
}

// Asks for the file that was mapped, if what lies at its place is another.
int open_file(const std::string& file, const std::vector<std::uint8_t>& build_id) {
  const int fd = open_regular_file(file.c_str());
  const int error = errno;
  if (build_id.empty() || (fd >= 0 && has_build_id(fd, build_id))) return fd;
  const int fetched = fetch_elf_file(build_id);
  if (fetched >= 0 && fd >= 0) close(fd);
  errno = error;
  return fetched >= 0 ? fetched : fd;
}

char* g_debug_path = nullptr;  // the default: /usr/lib/debug

const Dwfl_Callbacks kCallbacks = {
    .find_elf = find_no_elf,
    .find_debuginfo = find_debug_file,
    .section_address = nullptr,
    .debuginfo_path = &g_debug_path,
};

}  // namespace

Result<std::unique_ptr<ElfModule>> ElfModule::open(const Module& module) {
  const std::string& path = module.path;
  const std::vector<std::uint8_t>& build_id = module.build_id;
  const std::string& file = module.file.empty() ? path : module.file;
  const int fd = module.bytes ? open_bytes(*module.bytes) : open_file(file, build_id);
  if (fd < 0) {
    return Error{fmt::format("{}: cannot be read ({}): its frames have no names", path,
                             errno == EINVAL ? "not a regular file" : std::strerror(errno))};
  }
  std::unique_ptr<ElfModule> self(new ElfModule);
  self->path_ = path;
  self->session_ = dwfl_begin(&kCallbacks);
  if (self->session_ == nullptr) {
    close(fd);
    return Error{fmt::format("{}: cannot be read ({})", path, dwfl_errmsg(-1))};
  }
  dwfl_report_begin(self->session_);
  self->module_ = dwfl_report_elf(self->session_, path.c_str(), file.c_str(), fd, 0, true);
  if (self->module_ == nullptr) close(fd);
  dwfl_report_end(self->session_, nullptr, nullptr);
  GElf_Addr bias = 0;
  Elf* elf = self->module_ == nullptr ? nullptr : dwfl_module_getelf(self->module_, &bias);
  GElf_Ehdr header;
  if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr || header.e_machine != EM_X86_64 || bias != 0) {
    return Error{fmt::format("{}: is not an x86-64 ELF file that can be read: its frames have no names", path)};
  }

  if (!build_id.empty()) {
    const void* found = nullptr;
    const ssize_t length = dwelf_elf_gnu_build_id(elf, &found);
    if (length != static_cast<ssize_t>(build_id.size()) || std::memcmp(found, build_id.data(), build_id.size()) != 0) {
      return Error{fmt::format(
          "{}: the file has changed since the program ran (another build-id): its frames have no names", path)};
    }
  }

  std::size_t size = 0;
  if (const char* raw = elf_rawfile(elf, &size); raw != nullptr) {
    self->image_ = std::as_bytes(std::span(raw, size));
  }
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) == 0) {
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) break;
      if (segment.p_type == PT_GNU_EH_FRAME) self->unwind_table_address_ = segment.p_vaddr;
      if (segment.p_type != PT_LOAD) continue;
      self->segments_.push_back(
          {segment.p_vaddr, segment.p_memsz, segment.p_filesz, segment.p_offset, (segment.p_flags & PF_X) != 0});
    }
  }
  return self;
}

ElfModule::~ElfModule() {
  if (session_ != nullptr) dwfl_end(session_);
}

const ElfModule::Segment* ElfModule::segment_of(std::uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (address >= segment.start && address - segment.start < segment.memory_bytes) return &segment;
  }
  return nullptr;
}

bool ElfModule::is_executable(std::uint64_t address) const {
  const Segment* segment = segment_of(address);
  return segment != nullptr && segment->executable;
}

std::span<const std::byte> ElfModule::bytes_at(std::uint64_t address) const {
  const Segment* segment = segment_of(address);
  if (segment == nullptr) return {};
  const std::uint64_t offset = address - segment->start;
  if (offset >= segment->file_bytes || segment->file_offset > image_.size() ||
      offset >= image_.size() - segment->file_offset) {
    return {};
  }
  const std::uint64_t available = image_.size() - segment->file_offset - offset;
  return image_.subspan(segment->file_offset + offset, std::min(segment->file_bytes - offset, available));
}

}  // namespace forksight::symbols
