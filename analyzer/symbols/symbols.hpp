// From addresses to names: modules, frames with file and line, locks that are globals, and stacks unwound offline.
// One Symbolizer stands for the modules of one process image; it keeps ELF and DWARF data open and caches what it
// found, and what one has learnt about a file the others share. One Symbolizer is not for two threads at a time;
// several, in several threads, are. Built on libdw (elfutils); separate debug files are found by build-id and by debug
// link, on this machine alone (but see debug_files.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/open_file.hpp"
#include "model/model.hpp"
#include "symbols/registers.hpp"

namespace forksight::symbols {

struct Module {
  std::string path;
  std::uint64_t bias = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::vector<std::uint8_t> build_id;                        // as recorded; empty: not checked against the file
  std::string file = {};                                     // where the file is read, if not at `path`
  std::shared_ptr<const std::vector<std::byte>> bytes = {};  // null, or the file itself: none is read
  std::optional<files::MappedFile> mapped = {};              // of a live process: the file that it maps
};

// Registers of the innermost frame and the bytes from `sp` upward.
struct StackSample {
  std::uint64_t pc = 0;  // a return address: the call is the instruction before it
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
  std::span<const std::byte> memory;
  bool cut = false;     // the bytes end before the stack does
  bool frozen = false;  // inner frames may have been overwritten since: resynchronise where unwinding fails
};

struct DataSymbol {
  std::string name;    // demangled; inside of a larger object "queue.mutex", "locks[3]" or "queue+0x8"
  std::string module;  // path
};

struct CodeSymbol {
  std::string function;  // demangled
  std::string module;
};

class Symbolizer {
 public:
  explicit Symbolizer(std::vector<Module> modules);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // All frames, innermost first, inlined ones expanded. Frames of the shim itself are left out.
  model::Stack unwind(const StackSample& sample);
  // The same for a stopped thread, in a live process or a core: its pc is exact, and any register may be known. If
  // the caller of a frame depends on a register whose value is not known, the frames behind it are searched by their
  // code. They are approximate.
  model::Stack unwind_thread(const Registers& registers, const StackBytes& stack);
  // The object that holds `address`, if it is in a module's symbol table (exported or not).
  bool find_data(std::uint64_t address, DataSymbol& out);
  // The function that holds `address`, an exact address (not a return address).
  bool find_code(std::uint64_t address, CodeSymbol& out);
  // The name of the function that the call right before `return_address` (run-time) is to, as the code has it:
  // directly, or through the linkage table. "" if it is by pointer, or not known.
  std::string find_callee(std::uint64_t return_address);
  // Run-time address of the function or object `name`, as its symbol has it (not demangled), exported or not. In the
  // first module that has it, of those whose file name starts with `file_prefix`: without one, all modules are opened.
  std::optional<std::uint64_t> find_symbol(std::string_view name, std::string_view file_prefix = {});

  // True if a module imports one of the functions `names`, or if that cannot be told: its file cannot be read, or it
  // has no table of dynamic symbols, as a static program. libc, the loader, the vDSO and the shim are not asked.
  bool may_import(std::span<const std::string_view> names);

  // What could not be seen: a module that has changed (build-id), is missing, or has no symbols. Grows with use.
  const std::vector<std::string>& limits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forksight::symbols
