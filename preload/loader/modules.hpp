// The loaded objects, as far as the shim needs them: which are OpenMP runtimes, what is new since the trace was last
// told. The loader's list is read without its lock (a thread may sit in a dl_iterate_phdr callback for ever; a plain
// fork() would not wait for it, so we must not either). Objects of the start-up are read directly; whatever came later
// is fetched by process_vm_readv, which does not fault when another thread unloads it meanwhile.
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
  std::uint64_t name;   // address of the loader's name string, part of the identity
  std::uint64_t start;  // mapped range; 0, 0: gone before it could be read
  std::uint64_t end;
  std::uint64_t code;  // its executable part
  std::uint64_t code_end;
  std::uint64_t tls_image;  // PT_TLS: what a new thread's block starts from
  std::uint64_t tls_image_bytes;
  std::uint64_t tls_bytes;  // 0: no TLS segment
  std::uint32_t build_id_bytes;
  std::uint8_t build_id[32];
  std::int16_t runtime;   // index into the table of OpenMP runtimes, -1: is none
  std::int16_t provider;  // the runtime that serves this module's GOMP calls, -1: none, -2: not asked yet
  bool recorded;          // in the trace
  bool is_permanent;      // loaded at start-up: the loader never unloads it
};

// Remembers which objects were there at start-up. By the initialiser.
void start_modules();
// The last of them in the loader's list; null before start_modules, when all are.
const link_map* last_at_startup();
// Brings the table up to date and, if a trace is open, appends records of what came and went.
// Bounded in time; where another thread is at it for long, the table stays as it was.
void refresh_modules();
std::uint32_t module_count();
Module& module_at(std::uint32_t index);
Module* find_module(std::uint64_t address);

// In a forked child: whoever was at work on the table is gone. What it left is whole up to its count, and the next
// refresh goes on from there.
void release_modules_in_child();

}  // namespace forksight
