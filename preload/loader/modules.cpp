#include "loader/modules.hpp"

#include <string.h>
#include <sys/auxv.h>

#include <atomic>

#include "guest/clock.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "loader/library_events.hpp"
#include "loader/loaded_object.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// The head of glibc's link_map is its public part: l_addr, l_name, l_ld, l_next, l_prev (<link.h>).
static_assert(offsetof(link_map, l_next) == 24);
constexpr std::size_t kNodeBytes = offsetof(link_map, l_prev);

constinit Module g_table[kMaxModules] = {};
constinit Module* g_modules = nullptr;  // null before the start
constinit std::uint32_t g_count = 0;
constinit const link_map* g_last_at_startup = nullptr;
constinit std::atomic<std::int32_t> g_busy{0};  // tid of the thread that works on the table; 0: none

// True while the working thread reads an object that was loaded at start-up. Such an object stays loaded, so it is read
// directly, without a system call that a filter could refuse.
constinit bool g_reads_permanent = false;

bool copy(std::uint64_t from, void* to, std::size_t bytes) {
  const auto* const at = reinterpret_cast<const void*>(from);
  if (!g_reads_permanent) return read_memory(at, to, bytes) == bytes;
  memcpy(to, at, bytes);
  return true;
}

// Finds the build id, NT_GNU_BUILD_ID, in a PT_NOTE segment (owner "GNU", type 3).
void read_build_id(Module& module, std::uint64_t at, std::uint64_t end) {
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    char owner[4];
    if (!copy(at, &note, sizeof note)) return;
    const std::uint64_t name = at + sizeof note;
    const std::uint64_t data = name + ((note.n_namesz + 3U) & ~3U);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof owner && note.n_descsz <= sizeof module.build_id &&
        copy(name, owner, sizeof owner) && memcmp(owner, "GNU", sizeof owner) == 0 &&
        copy(data, module.build_id, note.n_descsz)) {
      module.build_id_bytes = note.n_descsz;
      return;
    }
    at = data + ((note.n_descsz + 3U) & ~3U);
  }
}

void read_segment(Module& module, const ElfW(Phdr) & phdr) {
  const std::uint64_t low = module.bias + phdr.p_vaddr;
  if (phdr.p_type == PT_LOAD) {
    if (module.end == 0 || low < module.start) module.start = low;
    if (low + phdr.p_memsz > module.end) module.end = low + phdr.p_memsz;
    if ((phdr.p_flags & PF_X) != 0) {
      if (module.code_end == 0) module.code = low;
      module.code_end = low + phdr.p_memsz;
    }
  } else if (phdr.p_type == PT_TLS) {
    module.tls_image = low;
    module.tls_image_bytes = phdr.p_filesz;
    module.tls_bytes = phdr.p_memsz;
  } else if (phdr.p_type == PT_NOTE && module.build_id_bytes == 0) {
    read_build_id(module, low, low + phdr.p_filesz);
  }
}

// The address at which the ELF header is mapped; 0 if the object was already unloaded.
std::uint64_t find_header(const Module& module) {
  if (module.bias == getauxval(AT_SYSINFO_EHDR)) return module.bias;
  return find_elf_header(module.bias, module.dynamic, g_reads_permanent);
}

// Fills in what the program headers say about the module. Returns false if the headers cannot be read, or if the object
// has no segments. `is_main`: the object is the program. Not inlined, so that this stack frame is free again before
// other functions are called.
__attribute__((noinline)) bool read_layout(Module& module, bool is_main) {
  std::uint64_t phdrs = getauxval(AT_PHDR);
  std::uint64_t count = getauxval(AT_PHNUM);
  if (!is_main) {
    ElfW(Ehdr) head;
    const std::uint64_t base = find_header(module);
    if (base == 0 || !copy(base, &head, sizeof head)) return false;
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr))) return false;
    phdrs = base + head.e_phoff;
    count = head.e_phnum;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    ElfW(Phdr) phdr;
    if (!copy(phdrs + i * sizeof phdr, &phdr, sizeof phdr)) return false;
    read_segment(module, phdr);
  }
  return module.end > module.start;
}

// Waits up to 5 ms until no other thread works on the table. Returns false if another thread still works on it, or if
// this thread was interrupted while it worked on the table.
bool take() {
  const std::int32_t self = sys::gettid();
  const std::uint64_t deadline = now_ns() + 5'000'000;
  for (;;) {
    std::int32_t expected = 0;
    if (g_busy.compare_exchange_strong(expected, self, std::memory_order_acquire)) return true;
    // If this thread has the table already, this is a signal handler that interrupted the shim's own work.
    if (expected == self || now_ns() > deadline) return false;
    sys::yield();
  }
}

void give() { g_busy.store(0, std::memory_order_release); }

void describe(const link_map* at, const link_map& node, const link_map* head, bool is_permanent, Module& module) {
  module = {};
  module.map = at;
  module.bias = node.l_addr;
  module.dynamic = node.l_ld;
  module.name = reinterpret_cast<std::uint64_t>(node.l_name);
  module.runtime = -1;
  module.provider = -2;
  module.is_permanent = is_permanent;
  if (node.l_ld != nullptr && read_layout(module, at == head)) {
    library_added(module);
  } else {
    // The object gets an entry all the same, because the table must have the same order as the list. Its range is
    // empty, so that no address is found in it.
    module.start = module.end = 0;
    module.recorded = true;
  }
}

// Keeps the first `keep` entries of the table. The objects of the loader's list from `at` on replace the other entries.
void read_rest(std::uint32_t keep, const link_map* at) {
  const link_map* const head = _r_debug.r_map;
  for (std::uint32_t i = keep; i < g_count; ++i) library_removed(g_modules[i]);
  const bool some_are_gone = keep < g_count;
  g_count = keep;
  libraries_changed(some_are_gone);
  bool is_permanent = keep == 0 || g_modules[keep - 1].map != g_last_at_startup;
  is_permanent = is_permanent && (keep == 0 || g_modules[keep - 1].is_permanent);
  for (; at != nullptr && g_count < kMaxModules; ++g_count) {
    link_map node;
    g_reads_permanent = is_permanent;
    if (!copy(reinterpret_cast<std::uint64_t>(at), &node, kNodeBytes)) break;
    describe(at, node, head, is_permanent, g_modules[g_count]);
    is_permanent = is_permanent && at != g_last_at_startup;
    at = node.l_next;
  }
  g_reads_permanent = false;
}

bool same(const Module& module, const link_map& node) {
  return module.bias == node.l_addr && module.dynamic == node.l_ld &&
         module.name == reinterpret_cast<std::uint64_t>(node.l_name);
}

// Compares the entries from `index` on with the loader's list. Returns the index of the first entry that differs. `at`
// is the list node for `index`. The function moves `at` to the list node for the result. One system call reads four
// nodes.
std::uint32_t count_unchanged(std::uint32_t index, const link_map*& at) {
  constexpr std::uint32_t kBatch = 4;  // some 300 bytes of the stack
  while (index < g_count) {
    link_map nodes[kBatch];
    iovec local[kBatch];
    iovec remote[kBatch];
    const std::uint32_t batch = g_count - index < kBatch ? g_count - index : kBatch;
    for (std::uint32_t i = 0; i < batch; ++i) {
      local[i] = {&nodes[i], kNodeBytes};
      remote[i] = {const_cast<link_map*>(g_modules[index + i].map), kNodeBytes};
    }
    const std::size_t got = read_pieces(local, remote, batch);
    for (std::uint32_t i = 0; i < batch; ++i) {
      const Module& module = g_modules[index + i];
      if (got < (i + 1) * kNodeBytes || module.map != at || !same(module, nodes[i])) return index + i;
      at = nodes[i].l_next;
    }
    index += batch;
  }
  return index;
}

// Returns the index of the first entry that differs from the loader's list, and sets `at` to the list node for it.
__attribute__((noinline)) std::uint32_t find_change(const link_map*& at) {
  at = _r_debug.r_map;
  std::uint32_t index = 0;
  while (index < g_count && g_modules[index].is_permanent) at = g_modules[index++].map->l_next;
  return count_unchanged(index, at);
}

void refresh_held() {
  const link_map* at = nullptr;
  const std::uint32_t index = find_change(at);
  if (index < g_count || at != nullptr) read_rest(index, at);
  libraries_settled();
}

}  // namespace

void start_modules() {
  g_modules = g_table;
  for (const link_map* at = _r_debug.r_map; at != nullptr; at = at->l_next) g_last_at_startup = at;
}

const link_map* last_at_startup() { return g_last_at_startup; }

void refresh_modules() {
  if (g_modules == nullptr) return;
  // If nothing has changed, nothing is written. While another thread changes the table, find_change() may find a
  // difference that does not exist. So refresh_held() compares again.
  const link_map* at = nullptr;
  if (find_change(at) == g_count && at == nullptr && g_count != 0 && !libraries_are_awaited()) return;
  if (!take()) return;
  refresh_held();
  give();
}

void release_modules_in_child() {
  if (g_busy.load(std::memory_order_relaxed) != 0) give();
}

std::uint32_t module_count() { return g_count; }
Module& module_at(std::uint32_t index) { return g_modules[index]; }

Module* find_module(std::uint64_t address) {
  for (std::uint32_t i = 0; i < g_count; ++i) {
    if (address >= g_modules[i].start && address < g_modules[i].end) return &g_modules[i];
  }
  return nullptr;
}

}  // namespace forksight
