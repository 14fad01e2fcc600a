#include "loader/next.hpp"

#include <link.h>
#include <string.h>

#include "guest/clock.hpp"
#include "guest/memory.hpp"
#include "loader/elf_view.hpp"
#include "loader/libc.hpp"
#include "loader/modules.hpp"

namespace forksight {

constinit Next g_next = {};
constinit Cleanup g_cleanup = {};
constinit const char* g_libc_single_threaded = nullptr;
constinit bool g_spin_is_glibcs = false;
constinit ReadClock g_read_clock = nullptr;
constinit bool g_may_read_clock = true;

namespace {

// libc's clock_gettime(); null if it was not found.
constinit ReadClock g_clock_of_libc = nullptr;

// The shim in the loader's list; null if it is not there.
const link_map* find_self() {
  const link_map* self = _r_debug.r_map;
  while (self != nullptr && self->l_ld != _DYNAMIC) self = self->l_next;
  return self;
}

// The first object after the shim, in the order of the global scope.
const link_map* first_after_shim() {
  const link_map* const self = find_self();
  return self == nullptr ? nullptr : self->l_next;
}

// True if the function consists of these instructions: lock decl (%rdi); jne +0xb; xor %eax, %eax; ret; 8 bytes of
// padding; pause; cmpl $0, (%rdi); jg -0x17; jmp -0x9
bool is_glibcs_spin_lock(const void* function) {
  constexpr unsigned char kFirst[] = {0xf0, 0xff, 0x0f, 0x75, 0x0b, 0x31, 0xc0, 0xc3};
  constexpr unsigned char kLoop[] = {0xf3, 0x90, 0x83, 0x3f, 0x00, 0x7f, 0xe9, 0xeb, 0xf7};
  const auto* const code = static_cast<const unsigned char*>(function);
  return memcmp(code, kFirst, sizeof kFirst) == 0 && memcmp(code + 16, kLoop, sizeof kLoop) == 0;
}

constexpr const char kLibc[] = "libc.so.6";
// Libraries that were part of glibc before 2.34. libpthread.so.0 is never unloaded (DF_1_NODELETE).
constexpr char kParts[][16] = {"libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1"};

// True since glibc 2.34: libc.so.6 contains all of these libraries.
constinit bool g_libc_is_whole = false;

bool is_part_of_libc(const ElfView& view) {
  if (view.has_soname(kLibc)) return true;
  if (g_libc_is_whole) return false;
  for (const char* part : kParts) {
    if (view.has_soname(part)) return true;
  }
  return false;
}

// For a reference that names a version of a certain library: returns which definitions in an object the loader uses. In
// that library the loader uses the default version, and in any other object only a definition without a version.
// `is_owner`: the object is that library.
Versions versions_in(bool is_owner) { return is_owner ? Versions::kDefault : Versions::kNone; }

// Searches the parts of libc that were loaded after the start, and returns the function's address; 0 if it is not
// found. Such a part may be unloaded meanwhile. Then its list node, and what the node points to, disappear. So the
// search copies all of it.
__attribute__((noinline)) std::uint64_t find_opened(const char* name, Versions versions, bool& stays) {
  const link_map* at = last_at_startup() == nullptr ? nullptr : last_at_startup()->l_next;
  while (at != nullptr) {
    link_map node;
    constexpr std::size_t kBytes = offsetof(link_map, l_prev);
    if (read_memory(at, &node, kBytes) != kBytes) return 0;
    at = node.l_next;
    if (node.l_ld == nullptr) continue;
    const ElfView view(node.l_addr, node.l_ld, Trust::kNone);
    const std::uint64_t found = is_part_of_libc(view) ? view.find_function(name, versions) : 0;
    if (found == 0) continue;
    stays = view.has_soname(kParts[0]);
    return found;
  }
  return 0;
}

// Finds the variable __libc_single_threaded. If the program refers to this variable, the program has a copy of the
// variable (a copy relocation). The copy is found first, and is the one that libc uses.
const char* find_single_threaded() {
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    const std::uint64_t found = view.find_variable("__libc_single_threaded");
    if (found != 0) return reinterpret_cast<const char*>(found);
    if (map == last_at_startup() || view.has_soname(kLibc)) break;
  }
  return nullptr;
}

constexpr const char kPush[] = "_pthread_cleanup_push";
constexpr const char kPop[] = "_pthread_cleanup_pop";

// Sets g_cleanup if the object has both functions. Each of the two names has several versions, but all versions of a
// name are the same function.
void find_cleanup_in(const ElfView& view) {
  const std::uint64_t push = view.find_function(kPush, Versions::kAny);
  if (push == 0) return;
  g_cleanup.pop = reinterpret_cast<decltype(g_cleanup.pop)>(view.find_function(kPop, Versions::kAny));
  g_cleanup.push = g_cleanup.pop == nullptr ? nullptr : reinterpret_cast<decltype(g_cleanup.push)>(push);
}

}  // namespace

std::uint64_t find_next(const char* name, bool& stays) {
  stays = true;
  for (const link_map* map = first_after_shim(); map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    if (const std::uint64_t found = view.find_function(name, versions_in(is_part_of_libc(view)))) return found;
    if (map == last_at_startup() || (g_libc_is_whole && view.has_soname(kLibc))) break;
  }
  return g_libc_is_whole ? 0 : find_opened(name, Versions::kDefault, stays);
}

void* find_late(void*& function) {
  initialise();
  const char* name = nullptr;
#define FORKSIGHT_HOOK(hook, required, probe, versions, prototype, contract) \
  if (&function == &g_next.hook) name = #hook;
#include "hooks.def"
  void* found = __atomic_load_n(&function, __ATOMIC_RELAXED);
  if (found == nullptr && name != nullptr) {
    bool stays = false;
    found = reinterpret_cast<void*>(find_next(name, stays));
    if (stays) __atomic_store_n(&function, found, __ATOMIC_RELAXED);
  }
  if (found == nullptr) __builtin_trap();
  return found;
}

bool find_cleanup() {
  bool stays = false;
  const std::uint64_t pop = g_libc_is_whole ? 0 : find_opened(kPop, Versions::kAny, stays);
  const std::uint64_t push = pop == 0 || !stays ? 0 : find_opened(kPush, Versions::kAny, stays);
  if (push == 0) return false;
  // Threads that get here at the same time store the same value.
  __atomic_store_n(&g_cleanup.pop, reinterpret_cast<decltype(g_cleanup.pop)>(pop), __ATOMIC_RELAXED);
  __atomic_store_n(&g_cleanup.push, reinterpret_cast<decltype(g_cleanup.push)>(push), __ATOMIC_RELEASE);
  return true;
}

std::uint64_t find_next_of(const char* name, const char* owner) {
  for (const link_map* map = first_after_shim(); map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    const bool is_owner = view.has_soname(owner);
    if (const std::uint64_t found = view.find_function(name, versions_in(is_owner))) return found;
    if (is_owner || map == last_at_startup()) break;
  }
  return 0;
}

std::uint64_t find_in_libc(const char* name) {
  for (const link_map* map = first_after_shim(); map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    if (view.has_soname(kLibc)) return view.find_function(name);
  }
  return 0;
}

std::uint64_t find_hook(const char* name) {
  const link_map* const self = find_self();
  if (self == nullptr) return 0;
  return ElfView(self->l_addr, self->l_ld, Trust::kStaysLoaded).find_function(name, Versions::kAny);
}

bool leads_to_libc(const char* name, const link_map* from) {
  for (const link_map* map = from; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr || map->l_ld == _DYNAMIC) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    if (view.find_function(name) != 0) return is_part_of_libc(view);
    if (map == last_at_startup()) break;
  }
  return false;
}

bool has_earlier_shim() {
  for (const link_map* map = _r_debug.r_map; map != nullptr && map->l_ld != _DYNAMIC; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    if (ElfView(map->l_addr, map->l_ld, Trust::kStaysLoaded).find_function("forksight_lock_waiting") != 0) return true;
  }
  return false;
}

void use_clock_of_libc() { g_read_clock = g_clock_of_libc; }

bool resolve_next() {
  // This code runs in the shim's constructor, or in a hook that an earlier constructor calls. The loader has then built
  // the list of start-up objects in the order of the global scope. There is normally no second thread that could change
  // the list: the hook of pthread_create() initialises the shim before it makes the thread. The search ends at libc. If
  // libc consists of several libraries (before glibc 2.34), the search continues to the end of the list.
  const link_map* map = first_after_shim();
  if (map == nullptr) return false;
  const link_map* libc = nullptr;
  const link_map* threads = nullptr;
  for (; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const ElfView view(map->l_addr, map->l_ld, Trust::kStaysLoaded);
    const bool is_libc = view.has_soname(kLibc);
    const Versions which = versions_in(is_part_of_libc(view));
#define FORKSIGHT_HOOK(name, required, probe, versions, prototype, contract) \
  if (g_next.name == nullptr) g_next.name = reinterpret_cast<void*>(view.find_function(#name, which));
#include "hooks.def"
    if (g_next.real_syscall == nullptr)
      g_next.real_syscall = reinterpret_cast<void*>(view.find_function("syscall", which));
    if (view.has_soname(kParts[0])) {
      find_cleanup_in(view);
      threads = map;
    }
    if (is_libc) {
      g_clock_of_libc = reinterpret_cast<ReadClock>(view.find_function("clock_gettime"));
      libc = map;
      g_libc_is_whole = view.find_function("pthread_create") != 0;
      if (g_libc_is_whole) {
        find_cleanup_in(view);
        break;
      }
    }
  }
  if (libc == nullptr) return false;
  if (threads == nullptr || g_libc_is_whole) threads = libc;
  identify_libc({libc->l_addr, libc->l_ld, Trust::kStaysLoaded}, {threads->l_addr, threads->l_ld, Trust::kStaysLoaded});
  g_libc_single_threaded = find_single_threaded();
  if (g_next.pthread_spin_lock != nullptr) g_spin_is_glibcs = is_glibcs_spin_lock(g_next.pthread_spin_lock);
  // If the thread library is not loaded yet (it may be opened later), only functions that every libc.so.6 has are
  // required.
  const bool has_threads = g_next.pthread_create != nullptr;
  bool complete = g_next.pthread_mutex_lock != nullptr && g_next.pthread_mutex_unlock != nullptr &&
                  g_next.pthread_cond_wait != nullptr && g_next.__register_atfork != nullptr &&
                  g_next.fork != nullptr && (has_threads || !g_libc_is_whole);
#define FORKSIGHT_HOOK(name, required, probe, versions, prototype, contract) \
  complete = complete && (!(required) || !has_threads || g_next.name != nullptr);
#include "hooks.def"
  return complete;
}

}  // namespace forksight

// Included after the list of hooks, because the list contains names that house_rules.hpp forbids.
#include "guest/house_rules.hpp"
