// The loaded objects, as far as the shim needs them: which are OpenMP runtimes, what is new since the trace was last
// told. The loader's list is read without its lock (a thread may sit in a dl_iterate_phdr callback for ever; a plain
// fork() would not wait for it, so we must not either). Known nodes are confirmed by _dl_find_object, which is
// lock-free; new ones are fetched by process_vm_readv, which does not fault when another thread unloads a library
// meanwhile.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>

namespace forksight {

inline constexpr std::uint32_t kMaxModules = 1024;

struct Module {
  const link_map* map;
  std::uint64_t bias;
  const ElfW(Dyn) * dynamic;
  std::uint64_t name;         // address of the loader's name string, part of the identity
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t phdr_count;
  std::int16_t runtime;       // index into the table of OpenMP runtimes, -1: is none
  std::int16_t provider;      // the runtime that serves this module's GOMP calls, -1: none, -2: not asked yet
  const ElfW(Phdr) * phdrs;
  bool recorded;              // in the trace
  bool is_permanent;          // the program itself, the vdso
};

// Brings the table up to date and, if a trace is open, appends records of what came and went.
// Bounded in time; where another thread is at it for long, the table stays as it was.
void refresh_modules();
std::uint32_t module_count();
Module& module_at(std::uint32_t index);
Module* find_module(std::uint64_t address);

// Held over a fork, so that the child inherits a whole table. A fork waits for at most a few milliseconds.
void hold_modules();
void release_modules(bool in_child);

}  // namespace forksight
