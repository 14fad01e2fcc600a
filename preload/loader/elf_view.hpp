// Reads a loaded ELF object through its dynamic section: symbols and their versions, the soname, needed libraries, PLT
// slots, and the TLS offset. This code takes no lock of the loader and allocates nothing. The shim does not use dlsym
// and dl_iterate_phdr for this, because they take locks that another thread may hold for any length of time. x86-64
// only.
//   Another thread may unload an object while it is read. Such an object is read with Trust::kNone: every access is a
//   bounded copy that fails if the memory no longer exists (read_memory). An object that certainly stays loaded is read
//   directly, with Trust::kStaysLoaded.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

#include "guest/memory.hpp"

namespace forksight {

enum class Trust { kNone, kStaysLoaded };

// Which definition to find. An object may define one name several times, with different symbol versions.
enum class Versions {
  // A definition without a version, or the default version. The loader binds a reference without a version to such a
  // definition.
  kDefault,
  // A definition without a version. The loader may bind a reference to such a definition even if the reference names a
  // version of another library.
  kNone,
  kAny,
};

class ElfView {
 public:
  static constexpr std::size_t kNameBytes = 128;  // the shim never looks for longer names
  static constexpr std::uint32_t kMaxVersions = 256;
  struct VersionStart {
    char text[8];
  };

  ElfView(ElfW(Addr) bias, const ElfW(Dyn) * dynamic, Trust trust);

  // The address of an exported, defined function; 0 if there is none.
  std::uint64_t find_function(const char* name, Versions versions = Versions::kDefault) const;
  // The address of an exported, defined variable; 0 if there is none. If the program has a copy of a library's variable
  // (a copy relocation), all objects use the copy, which is the first definition in the global scope. Then the address
  // in the library is not the one in use.
  std::uint64_t find_variable(const char* name) const;
  bool has_soname(const char* name) const;
  // Calls visit(start) for each symbol version that the object defines, until visit returns false. `start` has the
  // first eight bytes of the version's name. The base version, which has the name of the object itself, is left out.
  template <class Visit>
  void for_each_version(Visit visit) const {
    VersionStart start;
    std::uint64_t at = version_definitions_;
    for (std::uint32_t i = 0; at != 0 && i < kMaxVersions; ++i) {
      at = read_version(at, start);
      if (start.text[0] != '\0' && !visit(start)) return;
    }
  }
  // Sets `offset` to the start of the object's TLS segment, relative to the thread pointer. The value comes from a
  // relocation of the initial-exec TLS model, which the loader has filled in. Returns false if the object has no such
  // relocation, because it uses the dynamic TLS models. If dlopen opened the object, this relocation is the only place
  // from which the value can be read without a lock.
  bool find_static_tls_offset(std::int64_t& offset) const;
  // Calls visit(name) for each DT_NEEDED, until visit returns false.
  template <class Visit>
  void for_each_needed(Visit visit) const {
    ElfW(Dyn) entry;
    char name[kNameBytes];
    for (std::uint32_t i = 0; read_entry(i, entry); ++i) {
      if (entry.d_tag == DT_NEEDED && read_string(entry.d_un.d_val, name) && !visit(name)) return;
    }
  }
  // Calls visit(name, address of the slot) for each function of another object that this object calls through its PLT.
  template <class Visit>
  void for_each_call_slot(Visit visit) const {
    ElfW(Rela) entry;
    ElfW(Sym) symbol;
    char name[kNameBytes];
    for (std::uint64_t at = 0; at + sizeof entry <= plt_bytes_; at += sizeof entry) {
      if (!read(plt_relocations_ + at, &entry, sizeof entry)) return;
      if (ELF64_R_TYPE(entry.r_info) != R_X86_64_JUMP_SLOT) continue;
      if (!read(symbols_ + ELF64_R_SYM(entry.r_info) * sizeof symbol, &symbol, sizeof symbol)) return;
      if (symbol.st_shndx == SHN_UNDEF && read_string(symbol.st_name, name)) visit(name, bias_ + entry.r_offset);
    }
  }

 private:
  [[gnu::always_inline]] inline bool read(std::uint64_t address, void* to, std::size_t bytes) const {
    const auto* from = reinterpret_cast<const void*>(address);
    if (trust_ == Trust::kNone) return read_memory(from, to, bytes) == bytes;
    __builtin_memcpy(to, from, bytes);
    return true;
  }
  bool read_entry(std::uint32_t index, ElfW(Dyn) & entry) const;  // false at the end
  // Returns the address of the next entry; 0 after the last. Sets `start` to an empty text for the base version, and to
  // "?" if the name cannot be read.
  std::uint64_t read_version(std::uint64_t at, VersionStart& start) const;
  bool read_string(std::uint64_t offset, char (&to)[kNameBytes]) const;
  // has_string() and matches() are inlined, because frames of their own would add a quarter of a KiB to the deepest
  // stack of the shim.
  [[gnu::always_inline]] inline bool has_string(std::uint64_t offset, const char* text) const;
  [[gnu::always_inline]] inline bool matches(std::uint32_t index, const char* name, Versions versions,
                                             std::uint32_t type, std::uint64_t& value) const;
  std::uint64_t find(const char* name, Versions versions, std::uint32_t type) const;
  std::uint64_t find_by_gnu_hash(const char* name, Versions versions, std::uint32_t type) const;
  std::uint64_t find_by_sysv_hash(const char* name, Versions versions, std::uint32_t type) const;

  ElfW(Addr) bias_;
  std::uint64_t dynamic_;
  Trust trust_;
  // These members are addresses, unless a comment says otherwise. 0: the object has no such section.
  std::uint64_t symbols_ = 0;
  std::uint64_t strings_ = 0;
  std::uint64_t soname_ = 0;  // offset in strings_
  std::uint64_t gnu_hash_ = 0;
  std::uint64_t sysv_hash_ = 0;
  std::uint64_t versions_ = 0;
  std::uint64_t version_definitions_ = 0;
  std::uint64_t relocations_ = 0;  // DT_RELA
  std::uint64_t relocation_bytes_ = 0;
  std::uint64_t plt_relocations_ = 0;  // DT_JMPREL
  std::uint64_t plt_bytes_ = 0;
};

}  // namespace forksight
