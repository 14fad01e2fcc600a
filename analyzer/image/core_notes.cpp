#include "image/core_notes.hpp"

#include <elf.h>
#include <sys/procfs.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "files/budgets.hpp"
#include "image/elf_notes.hpp"

namespace forksight::image {
namespace {

static_assert(sizeof(elf_prstatus) == 336 && offsetof(elf_prstatus, pr_pid) == 32 &&
                  offsetof(elf_prstatus, pr_reg) == 112 && sizeof(elf_prstatus::pr_reg) == sizeof(user_regs_struct),
              "the layout is that of x86-64");
static_assert(sizeof(elf_prpsinfo) == 136 && offsetof(elf_prpsinfo, pr_pid) == 24, "the layout is that of x86-64");

constexpr std::uint64_t kMaxOffset = std::uint64_t{1} << 62U;

constexpr std::uint64_t kAlignment = 4;  // alignment of notes in a core, in bytes

template <class T>
std::optional<T> value_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Returns the text up to the first NUL, or all of it.
std::string text_of(const char* text, std::size_t size) { return std::string(text, strnlen(text, size)); }

void decode_thread(std::span<const std::byte> bytes, CoreNotes& notes) {
  const auto status = value_at<elf_prstatus>(bytes, 0);
  if (!status || status->pr_pid <= 0) return;
  CoreThread thread;
  thread.tid = status->pr_pid;
  thread.signal = status->pr_cursig;
  std::memcpy(&thread.registers, &status->pr_reg, sizeof thread.registers);
  notes.threads.push_back(thread);
}

void decode_process(std::span<const std::byte> bytes, CoreNotes& notes) {
  const auto info = value_at<elf_prpsinfo>(bytes, 0);
  if (!info) return;
  notes.pid = std::max(info->pr_pid, 0);
  notes.ppid = std::max(info->pr_ppid, 0);
  notes.group = std::max(info->pr_pgrp, 0);
  notes.uid = info->pr_uid;
  notes.gid = info->pr_gid;
  notes.name = text_of(info->pr_fname, sizeof info->pr_fname);
  notes.arguments = text_of(info->pr_psargs, sizeof info->pr_psargs);
  while (notes.arguments.ends_with(' ')) notes.arguments.pop_back();
}

// The note has two words first: the number of entries, and the unit of offsets. Three words for each entry follow:
// start, end and offset. Then come the paths, each with a NUL.
void decode_files(std::span<const std::byte> bytes, CoreNotes& notes) {
  const auto count = value_at<std::uint64_t>(bytes, 0);
  const auto unit = value_at<std::uint64_t>(bytes, 8);
  constexpr std::uint64_t kHead = 16;
  constexpr std::uint64_t kEntry = 24;
  if (!count || !unit || *unit == 0 || *count > (bytes.size() - kHead) / kEntry) return;
  const auto names_bytes = bytes.subspan(kHead + *count * kEntry);
  std::string_view names(reinterpret_cast<const char*>(names_bytes.data()), names_bytes.size());
  for (std::uint64_t i = 0; i < *count; ++i) {
    const std::size_t length = names.find('\0');
    if (length == std::string_view::npos) break;
    CoreMapping file;
    file.start = *value_at<std::uint64_t>(bytes, kHead + i * kEntry);
    file.end = *value_at<std::uint64_t>(bytes, kHead + i * kEntry + 8);
    const std::uint64_t pages = *value_at<std::uint64_t>(bytes, kHead + i * kEntry + 16);
    file.path = std::string(names.substr(0, length));
    names.remove_prefix(length + 1);
    if (file.start >= file.end || pages > kMaxOffset / *unit) continue;
    file.offset = pages * *unit;
    if (notes.files.size() >= files::kMaxCoreMappings) break;
    notes.files.push_back(std::move(file));
  }
}

// Sorts the mapped files by their addresses. Removes those that overlap: the kernel writes none, and each of them would
// have to be compared with all mappings.
void sort_files(CoreNotes& notes) {
  std::stable_sort(notes.files.begin(), notes.files.end(),
                   [](const CoreMapping& a, const CoreMapping& b) { return a.start < b.start; });
  std::uint64_t end = 0;
  std::erase_if(notes.files, [&](const CoreMapping& file) {
    if (file.start < end) return true;
    end = file.end;
    return false;
  });
}

void decode_auxiliary(std::span<const std::byte> bytes, CoreNotes& notes) {
  constexpr std::size_t kMaxBytes = 4096;  // the kernel writes some hundred bytes
  bytes = bytes.first(std::min(bytes.size(), kMaxBytes));
  notes.auxiliary_bytes.assign(bytes.begin(), bytes.end());
  for (std::uint64_t at = 0;; at += sizeof(Elf64_auxv_t)) {
    const auto entry = value_at<Elf64_auxv_t>(bytes, at);
    if (!entry || entry->a_type == AT_NULL) break;
    notes.auxiliary.emplace(entry->a_type, entry->a_un.a_val);
  }
}

}  // namespace

CoreNotes decode_notes(std::span<const std::byte> bytes) {
  CoreNotes notes;
  // With very many threads, a vector that grows would be copied to a memory twice as large.
  constexpr std::size_t kThreadNoteBytes = sizeof(Elf64_Nhdr) + 8 + sizeof(elf_prstatus);
  notes.threads.reserve(bytes.size() / kThreadNoteBytes);
  for_each_note(bytes, kAlignment, [&](const ElfNote& note) {
    if (note.owner != "CORE") return true;
    if (note.type == NT_PRSTATUS) decode_thread(note.body, notes);
    if (note.type == NT_PRPSINFO) decode_process(note.body, notes);
    if (note.type == NT_FILE) decode_files(note.body, notes);
    if (note.type == NT_AUXV) decode_auxiliary(note.body, notes);
    return true;
  });
  sort_files(notes);
  return notes;
}

}  // namespace forksight::image
