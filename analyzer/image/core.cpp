#include "image/core.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "files/budgets.hpp"
#include "image/core_cmdline.hpp"
#include "image/core_memory.hpp"
#include "image/core_notes.hpp"
#include "image/elf_head.hpp"
#include "image/modules.hpp"
#include "image/user_registers.hpp"

namespace forksight::image {
namespace {

constexpr std::uint64_t kVsyscall = 0xffff'ffff'ff60'0000;

// An ELF file that was mapped from its first byte on.
struct Program {
  std::uint64_t start = 0;
  std::string path;
  ElfHead head;
  bool is_in_core = false;  // false: the head comes from the file that is at `path` now
};

// Visits each entry of NT_FILE that belongs to a program. An entry belongs to the last program before it that has the
// path of the entry, if the entry starts within the addresses of that program's segments. `programs` and `files` are
// sorted by address.
template <class Visit>
void for_each_piece(const std::vector<Program>& programs, const std::vector<CoreMapping>& files, Visit visit) {
  std::unordered_map<std::string_view, const Program*> last;  // by path
  auto program = programs.begin();
  for (const CoreMapping& file : files) {
    for (; program != programs.end() && program->start <= file.start; ++program) last[program->path] = &*program;
    const auto found = last.find(file.path);
    if (found == last.end()) continue;
    const ElfHead& head = found->second->head;
    if (file.start - found->second->start < head.end_address - head.first_address) visit(*found->second, file);
  }
}

std::vector<Program> find_programs(const files::Owner& owner, const CoreMemory& memory,
                                   const std::vector<CoreMapping>& files, std::vector<std::string>& limits) {
  std::vector<Program> programs;
  for (const CoreMapping& file : files) {
    if (file.offset != 0) continue;
    if (programs.size() >= files::kMaxModules) {
      limits.push_back(fmt::format("the core has more than {} programs and libraries; some frames have no names",
                                   files::kMaxModules));
      break;
    }
    auto head = read_mapped_head(memory, file.start);
    const bool is_in_core = memory.value<std::uint32_t>(file.start).has_value();
    if (!is_in_core) head = read_file_head(owner, without_deleted(file.path));
    if (!head) continue;
    if (!is_in_core) {
      limits.push_back(fmt::format(
          "{}: the core does not show whether this is the file that was mapped; forksight uses the file as it is now",
          file.path));
    }
    programs.push_back({file.start, file.path, std::move(*head), is_in_core});
  }
  return programs;
}

// Finds the main program. Its program headers are at the address that the kernel passed to the process (AT_PHDR). Null:
// none of `programs` is the main program.
const Program* find_main_program(const std::vector<Program>& programs, const CoreNotes& notes) {
  const auto headers = notes.auxiliary.find(AT_PHDR);
  if (headers == notes.auxiliary.end()) return nullptr;
  for (const Program& program : programs) {
    if (program.start + program.head.header.e_phoff == headers->second) return &program;
  }
  return nullptr;
}

std::string hex(const std::vector<std::uint8_t>& id) {
  return id.empty() ? "none" : fmt::format("{:02x}", fmt::join(id, ""));
}

// Returns the reason why `exe` cannot be the program of this core; "" if it can.
std::string find_mismatch(const std::string& core, const std::string& exe, const Program* main) {
  const auto given = read_file_head(files::kCaller, exe);
  if (!given) return fmt::format("{}: is not a readable x86-64 program", exe);
  if (main == nullptr || !main->is_in_core || given->is_same_file(main->head)) return "";
  return fmt::format("{}: is not a core of {}: the build-ids differ ({} and {})", core, exe, hex(main->head.build_id),
                     hex(given->build_id));
}

// For each path, the first program that was mapped from it.
using ByPath = std::unordered_map<std::string, const Program*>;

bool is_executable(const ByPath& programs, const CoreMapping& file) {
  const auto program = programs.find(file.path);
  if (program == programs.end()) return false;
  return std::ranges::any_of(program->second->head.segments, [&](const Elf64_Phdr& segment) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) return false;
    const std::uint64_t start = segment.p_offset & ~std::uint64_t{4095};
    return file.offset >= start && file.offset < segment.p_offset + segment.p_filesz;
  });
}

// A core does not show which mappings are shared. forksight assumes that mappings of these files are shared.
bool is_shared_by_name(const std::string& path) {
  return path.starts_with("/dev/shm/") || path.starts_with("/dev/zero") || path.starts_with("/SYSV") ||
         path.starts_with("/memfd:");
}

std::vector<proc::Mapping> merge_mappings(const CoreMemory& memory, const CoreNotes& notes,
                                          const std::vector<Program>& programs) {
  ByPath by_path;
  for (const Program& program : programs) by_path.try_emplace(program.path, &program);
  std::vector<proc::Mapping> mappings;
  for (const CoreFile::Segment& segment : memory.file().segments()) {
    proc::Mapping mapping;
    mapping.start = segment.start;
    mapping.end = segment.end;
    mapping.readable = (segment.flags & PF_R) != 0;
    mapping.writable = (segment.flags & PF_W) != 0;
    mapping.executable = (segment.flags & PF_X) != 0;
    mappings.push_back(std::move(mapping));
  }
  // gcore writes no segment for memory that it did not dump. The addresses of such memory are taken from NT_FILE.
  const std::size_t segments = mappings.size();
  std::size_t at = 0;
  for (const CoreMapping& file : notes.files) {
    while (at < segments && mappings[at].end <= file.start) ++at;
    if (at < segments && mappings[at].start < file.end) {
      for (std::size_t i = at; i < segments && mappings[i].start < file.end; ++i) {
        if (mappings[i].start < file.start) continue;
        mappings[i].path = file.path;
        mappings[i].offset = file.offset + (mappings[i].start - file.start);
      }
      continue;
    }
    proc::Mapping mapping;
    mapping.start = file.start;
    mapping.end = file.end;
    mapping.readable = true;
    mapping.executable = is_executable(by_path, file);
    mapping.path = file.path;
    mapping.offset = file.offset;
    mappings.push_back(std::move(mapping));
  }
  std::stable_sort(mappings.begin(), mappings.end(),
                   [](const proc::Mapping& a, const proc::Mapping& b) { return a.start < b.start; });
  std::uint64_t end = 0;
  std::erase_if(mappings, [&](const proc::Mapping& mapping) {
    if (mapping.start < end) return true;
    end = mapping.end;
    return false;
  });

  const auto auxiliary = [&](std::uint64_t type) {
    const auto found = notes.auxiliary.find(type);
    return found == notes.auxiliary.end() ? 0 : found->second;
  };
  const std::uint64_t vdso = auxiliary(AT_SYSINFO_EHDR);
  const std::uint64_t on_stack = auxiliary(AT_EXECFN);
  for (proc::Mapping& mapping : mappings) {
    mapping.shared = is_shared_by_name(mapping.path);
    if (!mapping.path.empty()) continue;
    if (vdso >= mapping.start && vdso < mapping.end) mapping.path = "[vdso]";
    if (on_stack >= mapping.start && on_stack < mapping.end) mapping.path = "[stack]";
    if (mapping.start == kVsyscall) mapping.path = "[vsyscall]";
  }
  return mappings;
}

Thread make_thread(const CoreThread& from, const Memory& memory) {
  Thread thread;
  thread.tid = from.tid;
  thread.registers = by_dwarf_number(from.registers);
  thread.fs_base = from.registers.fs_base;
  const auto before = memory.value<std::uint16_t>(from.registers.rip - 2);
  constexpr std::uint16_t kSyscallInstruction = 0x050f;  // the bytes 0f 05
  const bool is_behind_syscall = !before || *before == kSyscallInstruction;
  if (is_in_call(from.registers) && is_behind_syscall) thread.call = call_of(from.registers);
  thread.state = thread.call ? 'S' : 'R';
  return thread;
}

std::vector<std::string> find_cmdline(const Image& image, const CoreNotes& notes) {
  // The path of the program (AT_EXECFN) is at the top of the first thread's stack, above the arguments.
  const auto path = notes.auxiliary.find(AT_EXECFN);
  const proc::Mapping* const stack = path == notes.auxiliary.end() ? nullptr : image.mapping_of(path->second);
  std::vector<std::string> arguments;
  if (stack != nullptr) {
    arguments = find_arguments(*image.memory, stack->start, stack->end, notes.auxiliary_bytes);
    if (!arguments.empty()) return arguments;
  }
  for (std::size_t start = 0; start < notes.arguments.size();) {
    const std::size_t end = std::min(notes.arguments.find(' ', start), notes.arguments.size());
    if (end > start) arguments.push_back(notes.arguments.substr(start, end - start));
    start = end + 1;
  }
  return arguments;
}

// Returns the user whose process was dumped. That is the owner of the core file. If root owns the file, as with
// systemd-coredump, the core itself names the user.
files::Owner owner_of(const CoreFile& file, const CoreNotes& notes) {
  const files::Owner& of_file = file.owner();
  return of_file.uid != 0 ? of_file : files::Owner{notes.uid, notes.gid, {}};
}

// `notes.threads` is freed: with very many threads, this function needs memory for what the image keeps.
void add_threads(Image& image, CoreNotes& notes) {
  image.pid = notes.pid;
  image.ppid = notes.ppid;
  image.is_parent_of_group = notes.ppid > 0 && notes.group == notes.ppid;
  image.signal = notes.threads.front().signal;
  image.signal_tid = image.signal != 0 ? notes.threads.front().tid : 0;
  std::vector<const CoreThread*> order;
  order.reserve(notes.threads.size());
  for (const CoreThread& thread : notes.threads) order.push_back(&thread);
  std::ranges::stable_sort(order, {}, &CoreThread::tid);
  if (image.pid == 0) image.pid = order.front()->tid;
  std::stable_partition(order.begin(), order.end(), [&](const CoreThread* thread) { return thread->tid == image.pid; });
  image.threads.reserve(order.size());
  for (const CoreThread* const thread : order) image.threads.push_back(make_thread(*thread, *image.memory));
  std::vector<CoreThread>().swap(notes.threads);
}

}  // namespace

Result<Image> open_core(const std::string& path, const CoreOptions& options) {
  auto file = CoreFile::open(path);
  if (!file) return Error{file.error()};
  CoreNotes notes = decode_notes(file->notes());
  file->forget_notes();
  if (notes.threads.empty()) {
    return Error{fmt::format("{}: contains no threads{}", path, file->missing_bytes() > 0 ? ": it is cut" : "")};
  }
  Image image;
  image.is_core = true;
  if (file->missing_bytes() > 0) {
    image.limits.push_back(
        fmt::format("{}: is cut, {} bytes are missing (ulimit -c, or a full disk): stacks and locks "
                    "may be incomplete",
                    path, file->missing_bytes()));
  }
  const auto memory = std::make_shared<CoreMemory>(std::move(file).value());
  if (notes.files.empty()) {
    image.limits.push_back(fmt::format("{}: does not say which files were mapped, so its frames have no names", path));
  }
  const files::Owner owner = owner_of(memory->file(), notes);
  const std::vector<Program> programs = find_programs(owner, *memory, notes.files, image.limits);
  const Program* const main = find_main_program(programs, notes);
  if (!options.exe.empty()) {
    if (std::string mismatch = find_mismatch(path, options.exe, main); !mismatch.empty()) return Error{mismatch};
  }
  bool is_main_found = false;
  std::unordered_map<const Program*, FilePlace> found_places;
  for (const Program& program : programs) {
    std::vector<FilePlace> places{{without_deleted(program.path), owner}};
    if (&program == main && !options.exe.empty()) places.insert(places.begin(), {options.exe, files::kCaller});
    const auto place = std::find_if(places.begin(), places.end(), [&](const FilePlace& candidate) {
      const auto head = read_file_head(candidate.owner, candidate.path);
      return head && head->is_same_file(program.head);
    });
    if (place == places.end()) continue;
    is_main_found = is_main_found || &program == main;
    found_places.emplace(&program, *place);
  }
  for_each_piece(programs, notes.files, [&](const Program& program, const CoreMapping& piece) {
    const auto place = found_places.find(&program);
    if (place == found_places.end()) return;
    memory->add_file(piece.start, piece.end, piece.offset, place->second.owner, place->second.path);
  });

  image.memory = memory;
  image.mappings = merge_mappings(*memory, notes, programs);
  image.modules = find_modules(
      owner, *memory, image.mappings,
      [&](const proc::Mapping& mapping) {
        const bool is_main = main != nullptr && mapping.start == main->start && !options.exe.empty();
        return is_main ? std::vector<FilePlace>{{options.exe, files::kCaller}} : std::vector<FilePlace>{};
      },
      image.limits);
  image.exe = main != nullptr ? without_deleted(main->path) : notes.name;
  mark_program(image.modules, image.exe);
  image.libc = find_libc(image.modules, image.exe);
  if (std::string limit = libc_limit(image.libc); !limit.empty()) {
    image.limits.push_back(fmt::format("process {}: {}", image.pid, limit));
  }
  add_threads(image, notes);
  image.cmdline = find_cmdline(image, notes);
  if (main != nullptr && !is_main_found) {
    image.limits.push_back(
        fmt::format("{}: the program's file is missing or has changed: name its file with --exe", image.exe));
  }
  return image;
}

}  // namespace forksight::image
