#include "symbols/elf_module.hpp"

#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "files/budgets.hpp"
#include "files/costly_files.hpp"
#include "files/debug_budget.hpp"
#include "files/elf_tables.hpp"
#include "files/opener.hpp"
#include "symbols/debug_files.hpp"

namespace forksight::symbols {
namespace {

// libdwfl gets the ELF file as an open descriptor, so it must not search for the file.
int find_no_elf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

// Makes a nameless file that contains `bytes`. Returns its descriptor, or -1 with errno.
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

// Opens the file that was mapped. If its path now leads to another file, asks the debuginfod servers for the mapped
// file, unless forksight may not ask servers.
int open_file(const std::string& file, const Module& module) {
  files::Descriptor found = files::open_mapped(module.owner, file, module.mapped);
  const int error = errno;
  if (module.build_id.empty() || (found && has_build_id(found.get(), module.build_id))) return found.release();
  const int fetched = fetch_elf_file(module.build_id);
  errno = error;
  return fetched >= 0 ? fetched : found.release();
}

// Returns the path of an open file, as the kernel knows it. libdw searches in the same folder for files that belong to
// this file.
std::string place_of(int fd) {
  std::array<char, 4096> path{};
  const ssize_t length = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), path.size());
  return length > 0 && static_cast<std::size_t>(length) < path.size()
             ? std::string(path.data(), static_cast<std::size_t>(length))
             : std::string();
}

char* g_debug_path = nullptr;  // null selects the default, /usr/lib/debug

const Dwfl_Callbacks kCallbacks = {
    .find_elf = find_no_elf,
    .find_debuginfo = find_debug_file,
    .section_address = nullptr,
    .debuginfo_path = &g_debug_path,
};

}  // namespace

void ElfModule::add_limit(std::string sentence) {
  if (!sentence.empty() && std::ranges::find(limits_, sentence) == limits_.end()) {
    limits_.push_back(std::move(sentence));
  }
}

// Decides which parts of the file may be read. If no part may be read, returns the reason. Otherwise returns "".
std::string ElfModule::find_fault(int fd) {
  const auto tables = files::read_tables(fd);
  if (!tables) return tables.error();
  // libdwfl would give addresses to the sections of an object file, and would apply its relocations.
  const auto type = tables->header.e_type;
  if (type != ET_EXEC && type != ET_DYN) return "it is neither a program nor a library";
  read_limit_ = files::read_limit_of(path_);
  if (is_limited()) {
    may_read_debug_ = false;
    for (std::size_t i = 0; i < tables->sections.size(); ++i) {
      const files::ElfSection& section = tables->sections[i];
      if (section.name == ".gnu_debugdata" || section.unpacked_size > 0) hidden_sections_.push_back(i);
    }
    if (read_limit_ == files::ReadLimit::kNone) return "";  // describe_read_limit_of_all() says what is left out
    add_limit(
        fmt::format("{}: reading its debug information took too much time or memory, or failed; no source lines "
                    "of it{}",
                    path_, may_read_frames() ? "" : ", and stacks through it may be incomplete"));
    return "";
  }
  note_shared_part(fd, tables.value());
  const files::DebugVerdict verdict = files::charge_debug_file(fd, tables.value(), path_, false);
  may_read_debug_ = verdict.may_read;
  add_limit(verdict.limit);
  files::allow_memory_for(fd, may_read_debug_ ? tables->unpacked_bytes() : 0);
  if (const std::uint64_t bytes = tables->frame_bytes(); bytes > files::kMaxFrameBytes) {
    may_read_frames_ = false;
    add_limit(fmt::format("{}: its call frame information has {}, more than {}; stacks through it may be incomplete",
                          path_, files::size_words(bytes), files::size_words(files::kMaxFrameBytes)));
  }
  for (std::size_t i = 0; i < tables->sections.size(); ++i) {
    const files::ElfSection& section = tables->sections[i];
    const bool is_mini = section.name == ".gnu_debugdata";
    if (section.unpacked_size > 0 && !may_read_debug_) hidden_sections_.push_back(i);
    if (!is_mini) continue;
    const files::DebugVerdict mini = files::charge_mini_debug(fd, section, path_);
    if (mini.may_read) files::allow_memory_for(fd, files::kMaxMiniDebugBytes);
    if (mini.may_read) continue;
    hidden_sections_.push_back(i);
    add_limit(mini.limit);
  }
  return "";
}

// Hides sections from libdw by removing their names, because libdw finds sections by their names.
void ElfModule::hide_sections(Elf* elf) const {
  for (const std::size_t number : hidden_sections_) {
    Elf_Scn* const section = elf_getscn(elf, number);
    GElf_Shdr header;
    if (section == nullptr || gelf_getshdr(section, &header) == nullptr) continue;
    header.sh_name = 0;
    header.sh_type = SHT_NULL;
    header.sh_flags &= ~static_cast<GElf_Xword>(SHF_COMPRESSED);
    gelf_update_shdr(section, &header);
  }
}

// Reads the section .gnu_debugaltlink. It contains a file name that ends with a NUL, and then a build-id.
void ElfModule::note_shared_part(int fd, const files::ElfTables& tables) {
  constexpr std::size_t kMaxLinkBytes = 8192;
  const files::ElfSection* const section = tables.find(".gnu_debugaltlink");
  if (section == nullptr || section->unpacked_size > 0 || section->size > kMaxLinkBytes) return;
  std::vector<std::uint8_t> bytes(section->size);
  bytes.resize(files::read_at(fd, section->offset, std::as_writable_bytes(std::span(bytes))));
  const auto end = std::ranges::find(bytes, 0);
  if (end == bytes.end()) return;
  shared_parts_.emplace_back(std::string(bytes.begin(), end), std::vector<std::uint8_t>(std::next(end), bytes.end()));
}

std::vector<std::uint8_t> ElfModule::shared_part_build_id(std::string_view name) const {
  for (const auto& [known, build_id] : shared_parts_) {
    if (known == name) return build_id;
  }
  return {};
}

bool ElfModule::accept_debug_file(int fd, std::span<const std::uint8_t> build_id) {
  const auto tables = files::read_tables(fd);
  if (!tables) return false;  // no ELF file; libdw must not get it, because libdw would also unpack an archive
  if (tables->header.e_type == ET_REL) return false;  // libdwfl would apply its relocations
  if (!std::ranges::equal(files::read_build_id(fd, tables.value()), build_id)) return false;
  const files::DebugVerdict verdict = files::charge_debug_file(fd, tables.value(), path_, true);
  add_limit(verdict.limit);
  if (!verdict.may_read) return false;
  if (const std::uint64_t bytes = tables->frame_bytes(); bytes > files::kMaxFrameBytes) {
    add_limit(
        fmt::format("{}: its debug information has {} of call frame information, more than {}; the report has no "
                    "source lines of this file",
                    path_, files::size_words(bytes), files::size_words(files::kMaxFrameBytes)));
    return false;
  }
  files::allow_memory_for(fd, tables->unpacked_bytes());
  note_shared_part(fd, tables.value());
  debug_places_.push_back(place_of(fd));
  return true;
}

bool ElfModule::accept_split_file(const char* name, const char* folder) {
  if (name == nullptr || *name == '\0') return false;
  std::vector<std::string> candidates;
  if (*name == '/') {
    candidates.emplace_back(name);
  } else {
    for (const std::string& place : debug_places_) candidates.push_back(place.substr(0, place.rfind('/') + 1) + name);
    if (folder != nullptr) candidates.push_back(fmt::format("{}/{}", folder, name));
  }
  for (const std::string& place : debug_places_) candidates.push_back(place + ".dwp");
  // libdw opens these files one after another. If one of them is a FIFO, libdw waits for a writer. So each file is
  // checked before libdw opens it.
  bool is_some_good = false;
  std::string unopened;
  for (const std::string& candidate : candidates) {
    const files::Descriptor file = files::open_for(owner_, candidate);
    if (!file && errno == ENOENT) continue;
    const auto tables = file ? files::read_tables(file.get()) : Result<files::ElfTables>(Error{});
    if (!tables) {
      add_limit(
          fmt::format("{}: no debug information could be read from it; some source lines are missing", candidate));
      return false;
    }
    const files::DebugVerdict verdict = files::charge_debug_file(file.get(), tables.value(), candidate, true);
    add_limit(verdict.limit);
    if (!verdict.may_read) return false;
    files::allow_memory_for(file.get(), tables->unpacked_bytes());
    // libdw opens the file by its path, and cannot be given the descriptor that the opener has opened.
    if (files::has_opener() && ::access(candidate.c_str(), R_OK) != 0) {
      unopened = candidate;
      continue;
    }
    is_some_good = true;
  }
  if (!is_some_good && !unopened.empty()) {
    add_limit(
        fmt::format("{}: not everybody may read it, so root's report lacks the functions that were inlined; run "
                    "forksight as the user of this file",
                    unopened));
  }
  return is_some_good;
}

Result<std::unique_ptr<ElfModule>> ElfModule::open(const Module& module) {
  const std::string& path = module.path;
  const std::vector<std::uint8_t>& build_id = module.build_id;
  const std::string& file = module.file.empty() ? path : module.file;
  if (files::read_limit_of(path) == files::ReadLimit::kNotRead) {
    return Error{fmt::format("{}: reading it took too much time or memory, or failed: its frames have no names", path)};
  }
  if (files::read_limit_of_all(module.is_program) == files::ReadLimit::kNotRead) return Error{};
  const files::FileWork work(path);
  const int fd = module.bytes ? open_bytes(*module.bytes) : open_file(file, module);
  if (fd < 0) {
    return Error{fmt::format("{}: cannot be read ({}): its frames have no names", path, files::reason_of(errno))};
  }
  std::unique_ptr<ElfModule> self(new ElfModule);
  self->path_ = path;
  self->owner_ = module.owner;
  self->is_program_ = module.is_program;
  if (const std::string fault = self->find_fault(fd); !fault.empty()) {
    close(fd);
    return Error{fmt::format("{}: cannot be read ({}): its frames have no names", path, fault)};
  }
  self->debug_places_.push_back(place_of(fd));
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

  self->hide_sections(elf);
  void** userdata = nullptr;
  dwfl_module_info(self->module_, &userdata, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  if (userdata != nullptr) *userdata = self.get();

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
      constexpr std::size_t kMaxLoaded = 1024;  // is_executable() and bytes_at() search the segments one by one
      if (segment.p_type != PT_LOAD || self->segments_.size() >= kMaxLoaded) continue;
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
