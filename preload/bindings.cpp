#include "bindings.hpp"

#include <elf.h>
#include <link.h>
#include <string.h>

#include <atomic>

#include "cuda/cuda.hpp"
#include "guest/sys.hpp"
#include "loader/elf_view.hpp"
#include "loader/loaded_object.hpp"
#include "loader/modules.hpp"
#include "mpi/mpi.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr std::uint64_t kPageBytes = 4096;

// True if the slot is in memory that the loader made read-only after the loader had bound the object.
bool is_read_only(const LoadedObject& object, std::uint64_t slot) {
  const auto start = object.start;
  const auto* const head = reinterpret_cast<const ElfW(Ehdr)*>(start);
  if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phentsize != sizeof(ElfW(Phdr))) return false;
  const auto* const segments = reinterpret_cast<const ElfW(Phdr)*>(start + head->e_phoff);
  for (std::uint32_t i = 0; i < head->e_phnum; ++i) {
    if (segments[i].p_type != PT_GNU_RELRO) continue;
    const std::uint64_t from = object.map->l_addr + segments[i].p_vaddr;
    if (slot >= (from & ~(kPageBytes - 1)) && slot < ((from + segments[i].p_memsz) & ~(kPageBytes - 1))) return true;
  }
  return false;
}

bool protect(std::uint64_t slot, int protection) {
  return sys::call(SYS_mprotect, static_cast<long>(slot & ~(kPageBytes - 1)), kPageBytes, protection) == 0;
}

// Stores the address of a wrapper in a slot. A thread that calls through the slot at the same time uses either the old
// or the new address.
void lead_to(const LoadedObject& object, std::uint64_t slot, std::uint64_t wrapper) {
  const bool is_closed = is_read_only(object, slot);
  if (is_closed && !protect(slot, PROT_READ | PROT_WRITE)) return;
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(slot), wrapper, __ATOMIC_RELEASE);
  if (is_closed) protect(slot, PROT_READ);
}

bool may_be_watched(const char* name) {
  return (name[0] == 'M' && name[1] == 'P') || (name[0] == 'u' && name[1] == 'c') || (name[0] == 'c' && name[1] == 'u');
}

// Returns the wrapper for this function, or the function itself if the shim does not watch it.
std::uint64_t wrapper_of(const char* name, std::uint64_t function) {
  if (name[0] == 'c') return wrap_cuda(name, function, trace::CudaWay::kSymbol);
  return wrap_mpi(name, function);
}

std::uint64_t find_in_startup(const char* name) {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map == last_at_startup() ? nullptr : map->l_next) {
    if (map->l_ld == nullptr || map->l_ld == _DYNAMIC) continue;
    if (const std::uint64_t found = ElfView(map->l_addr, map->l_ld, Trust::kStaysLoaded).find_function(name))
      return found;
  }
  return 0;
}

// Puts the address of a wrapper into each PLT slot through which the object calls a watched function. With lazy
// binding, a slot points into the object itself until the first call. For such a slot, `find(name)` returns the
// function to which the slot will be bound. A slot stays unchanged if `find` returns 0, or if the slot is null.
template <class Find>
void watch_calls(const link_map* map, Find find) {
  const LoadedObject object = find_object(reinterpret_cast<std::uint64_t>(map->l_ld));
  if (object.map != map) return;
  const auto start = object.start;
  const auto end = object.end;
  ElfView(map->l_addr, map->l_ld, Trust::kStaysLoaded).for_each_call_slot([&](const char* name, std::uint64_t slot) {
    if (!may_be_watched(name) || !(is_cuda_name(name) || is_mpi_name(name))) return;
    const std::uint64_t bound = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(slot), __ATOMIC_ACQUIRE);
    const std::uint64_t function = bound >= start && bound < end ? find(name) : bound;
    if (function == 0) return;
    const std::uint64_t wrapper = wrapper_of(name, function);
    if (wrapper != function && wrapper != bound) lead_to(object, slot, wrapper);
  });
}

// True if the object is MPI, UCX or the CUDA driver. Each of them exports a function that the others do not have.
bool is_provider(const ElfView& view) {
  return view.find_function("PMPI_Initialized") != 0 || view.find_function("ucp_init_version") != 0 ||
         view.find_function("cuDriverGetVersion") != 0;
}

bool has_startup_provider() {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map == last_at_startup() ? nullptr : map->l_next) {
    if (map->l_ld != nullptr && is_provider({map->l_addr, map->l_ld, Trust::kStaysLoaded})) return true;
  }
  return false;
}

// Objects that were examined. If the table is full, a new entry replaces the oldest one. The object of the replaced
// entry may then be examined again, which does no harm.
struct Opened {
  std::atomic<const void*> handle;
  std::atomic<std::uint64_t> dynamic;
  std::atomic<std::uint64_t> object;
};
constexpr std::uint32_t kOpened = 64;
constinit Opened g_opened[kOpened] = {};
constinit std::atomic<std::uint32_t> g_opened_count{0};

bool is_known(const void* handle) {
  for (const Opened& opened : g_opened) {
    if (opened.handle.load(std::memory_order_acquire) != handle) continue;
    const LoadedObject object = find_object(opened.dynamic.load(std::memory_order_relaxed));
    if (object.map == handle && identify(object) == opened.object.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

void remember(const link_map* map) {
  Opened& opened = g_opened[g_opened_count.fetch_add(1, std::memory_order_relaxed) % kOpened];
  const auto dynamic = reinterpret_cast<std::uint64_t>(map->l_ld);
  opened.handle.store(nullptr, std::memory_order_release);
  opened.dynamic.store(dynamic, std::memory_order_relaxed);
  opened.object.store(identify(find_object(dynamic)), std::memory_order_relaxed);
  opened.handle.store(map, std::memory_order_release);
}

bool is_at_startup(const link_map* map) {
  for (const link_map* at = _r_debug.r_map; at != nullptr; at = at == last_at_startup() ? nullptr : at->l_next) {
    if (at == map) return true;
  }
  return false;
}

// True if the object is in the loader's first namespace. An object that dlmopen loaded is in another namespace, which
// has its own global scope.
bool is_in_first_namespace(const link_map* map) {
  refresh_modules();
  const Module* const module = find_module(reinterpret_cast<std::uint64_t>(map->l_ld));
  return module != nullptr && module->map == map;
}

}  // namespace

void watch_startup_calls() {
  if (last_at_startup() == nullptr || !has_startup_provider()) return;
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map == last_at_startup() ? nullptr : map->l_next) {
    if (map->l_ld != nullptr && map->l_ld != _DYNAMIC) watch_calls(map, find_in_startup);
  }
}

void watch_opened_calls(void* handle, RealDlsym real_dlsym) {
  if (last_at_startup() == nullptr || is_known(handle)) return;
  const auto* const map = static_cast<const link_map*>(handle);
  // If the handle is invalid, this read may fault. The real dlsym reads the same memory, so it would fault, too.
  if (find_object(reinterpret_cast<std::uint64_t>(map->l_ld)).map != map) return;
  remember(map);
  if (is_at_startup(map)) return;
  watch_calls(map, [&](const char* name) -> std::uint64_t {
    if (!is_in_first_namespace(map)) return 0;
    const std::uint64_t found = find_in_startup(name);
    return found != 0 ? found : reinterpret_cast<std::uint64_t>(real_dlsym(handle, name));
  });
}

}  // namespace forksight
