// The table of modules, which are the loaded objects. The shim reads the loader's list without the loader's lock,
// because a thread may stay in a dl_iterate_phdr callback for ever while it holds the lock. A plain fork() does not
// wait for such a thread, so the shim must not wait either. Objects that were loaded at start-up are read directly.
// Objects that were loaded later are read by process_vm_readv, which does not fault if another thread unloads them
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
  std::uint64_t name;   // address of the loader's name string, which is part of the module's identity
  std::uint64_t start;  // mapped range; 0, 0: unloaded before it could be read
  std::uint64_t end;
  std::uint64_t code;  // the executable part of the range
  std::uint64_t code_end;
  std::uint64_t tls_image;  // PT_TLS: the initial contents of a new thread's block
  std::uint64_t tls_image_bytes;
  std::uint64_t tls_bytes;  // 0: no TLS segment
  std::uint32_t build_id_bytes;
  std::uint8_t build_id[32];
  std::int16_t runtime;   // index into the table of OpenMP runtimes; -1: the module is no runtime
  std::int16_t provider;  // the runtime that serves this module's GOMP calls; -1: none, -2: not looked up yet
  bool recorded;          // the trace has a record of the module
  bool is_permanent;      // loaded at start-up: the loader never unloads it
};

// Notes which objects were there at start-up. Called by the initialiser.
void start_modules();
// The last object in the loader's list that was there at start-up. Null before start_modules(): then all objects count
// as objects of the start-up.
const link_map* last_at_startup();
// Updates the table and, if a trace is open, appends records of loaded and unloaded objects. Bounded in time: if
// another thread works on the table for long, the table stays unchanged.
void refresh_modules();
std::uint32_t module_count();
Module& module_at(std::uint32_t index);
Module* find_module(std::uint64_t address);

// Called in a forked child, so that threads of the child can work on the table. A thread of the parent that worked on
// the table at the fork does not exist in the child. The table is complete up to its count, and the next refresh
// continues from there.
void release_modules_in_child();

}  // namespace forksight
