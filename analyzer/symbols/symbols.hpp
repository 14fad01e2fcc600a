// Finds names for addresses: the function, file and line of frames, and the names of global locks. Unwinds stacks, from
// recorded bytes or from memory. One Symbolizer is for the modules of one process image. It keeps ELF and DWARF data
// open, and caches what it finds. All Symbolizers share the data that was read from a file. Two threads must not use
// the same Symbolizer at the same time, but each thread may use its own Symbolizer. The library uses libdw (elfutils).
// Separate debug files are found by build-id and by debug link. Normally forksight searches only this machine for such
// files (see debug_files.hpp).
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
  std::vector<std::uint8_t> build_id;                        // from the trace; empty: the file is not checked
  std::string file = {};                                     // the file to read; "": `path`
  std::shared_ptr<const std::vector<std::byte>> bytes = {};  // the content, if no file is read; or null
  // for a live process: device and inode of the file that it maps
  std::optional<files::MappedFile> mapped = {};
  // the user whose process, core or trace names the file
  files::Owner owner = {};
  bool is_program = false;  // it is the main program of a process
};

// Registers of the innermost frame, and the bytes of the stack from `sp` upward.
struct StackSample {
  std::uint64_t pc = 0;  // a return address; the call is the instruction before it
  std::uint64_t sp = 0;
  std::uint64_t fp = 0;
  std::span<const std::byte> memory;
  bool cut = false;     // the bytes end before the stack does
  bool frozen = false;  // inner frames may have been overwritten since (frozen.hpp)
};

struct DataSymbol {
  std::string name;    // demangled; for a part of an object, for example "queue.mutex", "locks[3]" or "queue+0x8"
  std::string module;  // path
};

struct CodeSymbol {
  std::string function;  // demangled
  std::string module;
};

// A place on a stack that refers to a lock: see stack_references.hpp.
struct StackReference {
  model::Stack inner;     // the frames inside of the frame that refers to the lock; innermost first
  model::Stack stack;     // the frame that refers to the lock, and its callers
  std::string last_call;  // if the stack is frozen: the function that the innermost known frame called last, or ""
};

class Symbolizer {
 public:
  explicit Symbolizer(std::vector<Module> modules);
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Returns all frames, innermost first. Inlined calls are expanded. Frames of the shim itself are left out.
  model::Stack unwind(const StackSample& sample);
  // Like unwind(), but for a stopped thread of a live process, or for a thread of a core. The pc of such a thread is
  // exact, and any register may be known. The caller of a frame may depend on a register whose value is not known. Then
  // the caller and all outer frames are searched with the help of the machine code, and are approximate.
  model::Stack unwind_thread(const Registers& registers, const StackBytes& stack);
  // Finds the innermost frame of a stopped thread that refers to the lock at `address`; nullopt: no frame does.
  std::optional<StackReference> find_reference(const Registers& registers, const StackBytes& stack,
                                               std::uint64_t address);
  // Like find_reference(), but for a thread that no longer exists. `stack` must reach up to the frame of the thread's
  // first function (see last_calls.hpp). The innermost frames may have returned.
  std::optional<StackReference> find_frozen_reference(const StackBytes& stack, std::uint64_t address);
  // Finds the object that contains `address`, if a symbol table of a module has it. The symbol need not be exported.
  bool find_data(std::uint64_t address, DataSymbol& out);
  // Finds the function that contains `address`. `address` is an exact address, not a return address.
  bool find_code(std::uint64_t address, CodeSymbol& out);
  // Returns the name, not demangled, of the function that is called right before the run-time address `return_address`.
  // The code shows the name if the call is direct or goes through the linkage table. Returns "" if the call is by
  // pointer, or if the name is not known.
  std::string find_callee(std::uint64_t return_address);
  // Finds the run-time address of the function or object whose symbol is `name`. `name` is not demangled, and the
  // symbol need not be exported. Searches the modules whose file name starts with `file_prefix`, and takes the first
  // module that has the symbol. Without `file_prefix`, all modules may be opened.
  std::optional<std::uint64_t> find_symbol(std::string_view name, std::string_view file_prefix = {});

  // True if a module imports one of the functions `names`. Also true if the file of a module cannot be read, or has no
  // table of dynamic symbols, as in a static program: then the imports are not known. libc, the loader, the vDSO and
  // the shim are not examined.
  bool may_import(std::span<const std::string_view> names);

  // Returns a sentence for each module that could not be read as a whole: the file has another build-id, is missing, or
  // has no symbols. The list grows when more modules are used.
  std::vector<std::string> limits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forksight::symbols
