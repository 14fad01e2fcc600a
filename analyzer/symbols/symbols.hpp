// Finds names for addresses: frames with file and line, and global locks. Unwinds stacks, from recorded bytes or from
// memory. One Symbolizer is for the modules of one process image. It keeps ELF and DWARF data open, and caches what it
// finds. All Symbolizers share what is known about a file. Two threads must not use one Symbolizer at the same time.
// Several threads may each use their own. The library uses libdw (elfutils). Separate debug files are found by build-id
// and by debug link, only on this machine (but see debug_files.hpp).
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
  std::vector<std::uint8_t> build_id;                        // as recorded; empty: the file is not checked
  std::string file = {};                                     // the path to read the file from; "": read it from `path`
  std::shared_ptr<const std::vector<std::byte>> bytes = {};  // null, or the content of the file: then no file is read
  // for a live process: device and inode of the file that it maps
  std::optional<files::MappedFile> mapped = {};
  // the user whose process, core or trace names the file
  files::Owner owner = {};
};

// Registers of the innermost frame, and the bytes of the stack from `sp` upward.
struct StackSample {
  std::uint64_t pc = 0;  // a return address: the call is the instruction before it
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
  std::span<const std::byte> memory;
  bool cut = false;     // the bytes end before the stack does
  bool frozen = false;  // inner frames may have been overwritten since: see frozen.hpp
};

struct DataSymbol {
  std::string name;    // demangled; for a part of an object, for example "queue.mutex", "locks[3]" or "queue+0x8"
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

  // All frames, innermost first. Inlined calls are expanded. Frames of the shim itself are left out.
  model::Stack unwind(const StackSample& sample);
  // The same for a stopped thread of a live process or a core: its pc is exact, and any register may be known. The
  // caller of a frame may depend on a register whose value is not known. Then the code is used to search the frames
  // behind it. These frames are approximate.
  model::Stack unwind_thread(const Registers& registers, const StackBytes& stack);
  // The object that holds `address`, if it is in a module's symbol table (exported or not).
  bool find_data(std::uint64_t address, DataSymbol& out);
  // The function that holds `address`, an exact address (not a return address).
  bool find_code(std::uint64_t address, CodeSymbol& out);
  // The name of the function that is called right before the run-time address `return_address`. The code shows it if
  // the call is direct or goes through the linkage table. "" if the call is by pointer, or if the name is not known.
  std::string find_callee(std::uint64_t return_address);
  // The run-time address of the function or object whose symbol is `name` (not demangled, exported or not). Searches
  // the modules whose file name starts with `file_prefix`, and takes the first one that has the symbol. Without
  // `file_prefix`, all modules may be opened.
  std::optional<std::uint64_t> find_symbol(std::string_view name, std::string_view file_prefix = {});

  // True if a module imports one of the functions `names`, or if that cannot be told: the module's file cannot be read,
  // or has no table of dynamic symbols, as in a static program. libc, the loader, the vDSO and the shim are not
  // examined.
  bool may_import(std::span<const std::string_view> names);

  // A sentence for each thing that could not be seen: a module has changed (build-id), is missing, or has no symbols.
  // The list grows with use.
  const std::vector<std::string>& limits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forksight::symbols
