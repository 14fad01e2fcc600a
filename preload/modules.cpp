#include "modules.hpp"

#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>

#include <atomic>

#include "clock.hpp"
#include "elf_view.hpp"
#include "runtimes.hpp"
#include "sys.hpp"
#include "writer.hpp"

#include "guest.hpp"

namespace forksight {

namespace {

// The head of glibc's link_map is its public part: l_addr, l_name, l_ld, l_next, l_prev (<link.h>).
static_assert(offsetof(link_map, l_next) == 24);

constinit Module* g_modules = nullptr;  // mapped on first use: 64 KiB that most processes never need
constinit std::uint32_t g_count = 0;
constinit std::atomic<std::int32_t> g_busy{0};  // tid of the thread at work, 0: none
constinit thread_local bool t_holding = false;

// Is the object still loaded, under the same list node? _dl_find_object (glibc 2.35) answers without a lock, so the node
// is not touched before it is known to be alive.
bool is_unchanged(const Module& module, const link_map* at) {
  if (module.map != at) return false;
  dl_find_object found{};
  if (module.is_permanent) return true;
  return _dl_find_object(const_cast<ElfW(Dyn)*>(module.dynamic), &found) == 0 && found.dlfo_link_map == at &&
         module.bias == at->l_addr && module.name == reinterpret_cast<std::uint64_t>(at->l_name);
}

// Finds program headers and the mapped range; false if the object is gone already.
bool read_layout(Module& module, bool is_main) {
  ElfW(Ehdr) head{};
  if (is_main) {
    module.phdrs = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
    module.phdr_count = static_cast<std::uint32_t>(getauxval(AT_PHNUM));
  } else {
    dl_find_object found{};
    const std::uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
    std::uint64_t base = vdso;
    if (module.bias != vdso) {
      if (_dl_find_object(const_cast<ElfW(Dyn)*>(module.dynamic), &found) != 0) return false;
      base = reinterpret_cast<std::uint64_t>(found.dlfo_map_start);
    }
    if (sys::read_memory(reinterpret_cast<const void*>(base), &head, sizeof head, true) != sizeof head) return false;
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr))) return false;
    module.phdrs = reinterpret_cast<const ElfW(Phdr)*>(base + head.e_phoff);
    module.phdr_count = head.e_phnum;
  }
  module.start = ~std::uint64_t{0};
  module.end = 0;
  for (std::uint32_t i = 0; i < module.phdr_count; ++i) {
    ElfW(Phdr) phdr{};
    if (sys::read_memory(module.phdrs + i, &phdr, sizeof phdr, true) != sizeof phdr) return false;
    if (phdr.p_type != PT_LOAD) continue;
    const std::uint64_t low = module.bias + phdr.p_vaddr;
    const std::uint64_t high = low + phdr.p_memsz;
    if (low < module.start) module.start = low;
    if (high > module.end) module.end = high;
  }
  return module.end > module.start;
}

// NT_GNU_BUILD_ID of a PT_NOTE segment (owner "GNU", type 3); returns its length.
std::uint32_t read_build_id(const Module& module, std::uint8_t (&out)[32]) {
  for (std::uint32_t i = 0; i < module.phdr_count; ++i) {
    const ElfW(Phdr)& phdr = module.phdrs[i];
    if (phdr.p_type != PT_NOTE) continue;
    std::uint64_t at = module.bias + phdr.p_vaddr;
    const std::uint64_t end = at + phdr.p_filesz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const std::uint64_t name = at + sizeof(ElfW(Nhdr));
      const std::uint64_t data = name + ((note->n_namesz + 3U) & ~3U);
      if (data + note->n_descsz > end) break;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(reinterpret_cast<const void*>(name), "GNU", 4) == 0 &&
          note->n_descsz <= sizeof out) {
        memcpy(out, reinterpret_cast<const void*>(data), note->n_descsz);
        return note->n_descsz;
      }
      at = data + ((note->n_descsz + 3U) & ~3U);
    }
  }
  return 0;
}

void record_module(Module& module, bool is_main) {
  char path[512];
  std::size_t length = 0;
  const auto* name = reinterpret_cast<const char*>(module.name);
  if (is_main) {
    const long got = sys::call(SYS_readlinkat, AT_FDCWD, sys::word("/proc/self/exe"), sys::word(path), sizeof path);
    length = got > 0 ? static_cast<std::size_t>(got) : 0;
  } else if (module.bias == getauxval(AT_SYSINFO_EHDR)) {
    memcpy(path, "[vdso]", length = 6);
  } else {
    length = strnlen(path, sys::read_memory(name, path, sizeof path, true));
  }
  Record record(trace::RecordType::kModule, sizeof(trace::ModuleRecord) + length);
  if (!record) return;
  auto* const entry = record.as<trace::ModuleRecord>();
  entry->bias = module.bias;
  entry->start = module.start;
  entry->end = module.end;
  entry->build_id_bytes = read_build_id(module, entry->build_id);
  entry->path_bytes = static_cast<std::uint32_t>(length);
  memcpy(record.payload() + sizeof(trace::ModuleRecord), path, length);
  record.commit();
  module.recorded = true;
}

void forget(Module& module) {
  if (module.recorded) append(trace::RecordType::kModuleGone, trace::ModuleGoneRecord{module.bias});
  if (module.runtime >= 0) forget_runtime(static_cast<std::uint32_t>(module.runtime));
}

bool take() {
  const std::int32_t self = sys::gettid();
  const std::uint64_t deadline = now_ns() + 5'000'000;
  for (;;) {
    std::int32_t expected = 0;
    if (g_busy.compare_exchange_strong(expected, self, std::memory_order_acquire)) return true;
    if (expected == self || now_ns() > deadline) return false;  // self: a signal handler within our own work
    sys::yield();
  }
}

void give() { g_busy.store(0, std::memory_order_release); }

// Entries before `keep` are unchanged; what follows in the loader's list replaces the rest of the table.
void read_rest(std::uint32_t keep, const link_map* at, const link_map* head) {
  for (std::uint32_t i = keep; i < g_count; ++i) forget(g_modules[i]);
  if (keep < g_count) forget_callers();
  g_count = keep;
  for (std::uint32_t i = 0; i < keep; ++i) g_modules[i].provider = -2;
  while (at != nullptr && g_count < kMaxModules) {
    link_map node{};
    if (sys::read_memory(at, &node, offsetof(link_map, l_prev), true) < offsetof(link_map, l_prev)) break;
    Module& module = g_modules[g_count];
    module = {at, node.l_addr, node.l_ld, reinterpret_cast<std::uint64_t>(node.l_name), 0, 0, 0, -1, -2, nullptr, false,
              at == head || node.l_addr == getauxval(AT_SYSINFO_EHDR)};
    if (node.l_ld != nullptr && read_layout(module, at == head)) {
      module.runtime = static_cast<std::int16_t>(recognise_runtime(module));
    } else {
      // Kept, so that the table stays in step with the list; empty, so that nothing is found in it.
      module.start = module.end = 0;
      module.recorded = true;
    }
    ++g_count;
    at = node.l_next;
  }
}

void refresh_held() {
  if (g_modules == nullptr) {
    void* memory = sys::map(sizeof(Module) * kMaxModules, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (memory == nullptr) return;
    g_modules = static_cast<Module*>(memory);
  }
  const link_map* const head = _r_debug.r_map;
  const link_map* at = head;
  std::uint32_t index = 0;
  while (index < g_count && is_unchanged(g_modules[index], at)) {
    at = g_modules[index].map->l_next;
    ++index;
  }
  if (index < g_count || at != nullptr) read_rest(index, at, head);
  if (!trace_is_open()) return;
  for (std::uint32_t i = 0; i < g_count; ++i) {
    if (!g_modules[i].recorded) record_module(g_modules[i], g_modules[i].map == head);
  }
}

}  // namespace

void refresh_modules() {
  if (t_holding) return refresh_held();
  if (!take()) return;
  refresh_held();
  give();
}

std::uint32_t module_count() { return g_count; }
Module& module_at(std::uint32_t index) { return g_modules[index]; }

Module* find_module(std::uint64_t address) {
  for (std::uint32_t i = 0; i < g_count; ++i) {
    if (address >= g_modules[i].start && address < g_modules[i].end) return &g_modules[i];
  }
  return nullptr;
}

void hold_modules() { t_holding = take(); }

void release_modules(bool in_child) {
  // In the child the holder may be a thread that is gone: its work is left as it was, and seen to be incomplete by
  // the next refresh.
  if (in_child || t_holding) give();
  t_holding = false;
}

}  // namespace forksight
