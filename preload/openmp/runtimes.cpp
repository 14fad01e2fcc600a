#include "openmp/runtimes.hpp"

#include <string.h>

#include <atomic>

#include "loader/elf_view.hpp"
#include "loader/loaded_object.hpp"
#include "loader/scope.hpp"

namespace forksight {

namespace {

constinit Runtime g_runtimes[kMaxRuntimes] = {};

// A cache. It maps a loaded object to the runtime that serves the calls from this object. The first call from an object
// makes the entry. An entry is written once, and its `caller` is written last. All entries are cleared after an object
// was unloaded. If all entries are in use, the runtime of a further object is looked up at each of its calls.
struct CallerEntry {
  std::atomic<std::uint64_t> caller;  // identify() of the object that makes the calls; 0: the entry is empty
  Runtime* runtime;
};
constexpr std::uint32_t kCallers = 64;
constinit CallerEntry g_callers[kCallers] = {};
constinit std::atomic<std::uint32_t> g_caller_count{0};

constexpr const char* kEntryNames[] = {
#define FORKSIGHT_OMP_HOOK(name, versions) #name,
#include "hooks.def"
};

template <class Function>
void look_up(const ElfView& view, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(view.find_function(name));
}

ElfView view_of(const Module& module) {
  return {module.bias, module.dynamic, module.is_permanent ? Trust::kStaysLoaded : Trust::kNone};
}

// True if the module is an OpenMP runtime. GOMP calls from other objects may be bound to such a module.
bool provides_gomp(const Module& module) { return module.runtime >= 0; }

// The index of the first runtime among the objects that were loaded at start-up; -1: none. The loader searches these
// objects before the caller's own libraries. Libraries that are opened later with RTLD_GLOBAL come after the objects of
// the start-up. This file treats such libraries like libraries that are opened without RTLD_GLOBAL.
int runtime_at_startup() {
  for (std::uint32_t i = 0; i < module_count() && module_at(i).is_permanent; ++i) {
    if (module_at(i).runtime >= 0) return module_at(i).runtime;
  }
  return -1;
}

// Searches the module and the libraries that it needs, breadth first, as the loader does. Returns the index of the
// first runtime; -1: none.
int provider_of(Module& module) {
  if (module.provider == -2) {
    const Module* const provider = find_in_tree(module, provides_gomp);
    module.provider = provider != nullptr ? provider->runtime : std::int16_t{-1};
  }
  return module.provider;
}

bool is_worker(const Runtime& runtime, const Slot& slot) {
  return slot.state.load(std::memory_order_acquire) == SlotState::kLive && slot.epoch == epoch() && !slot.is_retired &&
         slot.start_routine >= runtime.start && slot.start_routine < runtime.end;
}

// True if all symbol versions of the library are those of libgomp. libgomp's own version script names all of its
// exports and hides the rest (libgomp.map). A library into which libgomp is linked statically has symbol versions of
// its own, or none.
bool has_only_versions_of_libgomp(const ElfView& view) {
  constexpr const char* kFamilies[] = {"GOMP_", "OMP_", "OACC_", "GOACC_", "OMPD_", "ACC_"};
  bool found = false;
  view.for_each_version([&](const ElfView::VersionStart& start) {
    found = false;
    for (const char* const family : kFamilies) found = found || strncmp(start.text, family, strlen(family)) == 0;
    return found;
  });
  return found;
}

}  // namespace

void recognise_runtime(Module& module) {
  module.runtime = -1;
  module.provider = -2;
  const ElfView view = view_of(module);
  const bool has_kmp = view.find_function("__kmpc_fork_call") != 0;
  const bool has_gomp = view.find_function("GOMP_parallel") != 0;
  // The shim itself exports the GOMP entries, but none of the other functions of a runtime.
  if ((!has_kmp && !has_gomp) || view.find_function("omp_get_max_threads") == 0) return;
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) {
    Runtime& runtime = g_runtimes[i];
    if (runtime.present) continue;
    runtime = {};
    runtime.kind = !has_kmp                         ? trace::RuntimeKind::kLibgomp
                   : view.has_soname("libiomp5.so") ? trace::RuntimeKind::kLibiomp5
                                                    : trace::RuntimeKind::kLibomp;
    runtime.map = module.map;
    runtime.bias = module.bias;
    runtime.is_all_libgomp = runtime.kind == trace::RuntimeKind::kLibgomp && module.map != _r_debug.r_map &&
                             has_only_versions_of_libgomp(view);
    runtime.dynamic = module.dynamic;
    runtime.start = module.start;
    runtime.end = module.end;
    runtime.tls_image = reinterpret_cast<const void*>(module.tls_image);
    runtime.tls_image_bytes = module.tls_image_bytes;
    runtime.tls_bytes = module.tls_bytes;
    look_up(view, "omp_get_max_threads", runtime.get_max_threads);
    look_up(view, "omp_get_level", runtime.get_level);
    look_up(view, "omp_get_active_level", runtime.get_active_level);
    look_up(view, "omp_set_num_threads", runtime.set_num_threads);
    look_up(view, "omp_get_max_active_levels", runtime.get_max_active_levels);
    look_up(view, "omp_set_max_active_levels", runtime.set_max_active_levels);
    look_up(view, "omp_get_dynamic", runtime.get_dynamic);
    look_up(view, "omp_set_dynamic", runtime.set_dynamic);
    look_up(view, "omp_get_thread_limit", runtime.get_thread_limit);
    look_up(view, "omp_pause_resource_all", runtime.pause_all);
    runtime.present = true;
    module.runtime = static_cast<std::int16_t>(i);
    return;
  }
}

void forget_runtime(const Module& module) {
  if (module.runtime >= 0) g_runtimes[module.runtime].present = false;
}

void forget_callers(bool some_are_gone) {
  for (std::uint32_t i = 0; i < module_count(); ++i) module_at(i).provider = -2;
  if (!some_are_gone) return;
  for (CallerEntry& entry : g_callers) entry.caller.store(0, std::memory_order_relaxed);
  g_caller_count.store(0, std::memory_order_release);
}

Runtime& runtime_at(std::uint32_t index) { return g_runtimes[index]; }

Runtime* runtime_of_caller(std::uint64_t caller) {
  const std::uint64_t object = identify(find_object(caller));
  const std::uint32_t known = g_caller_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < known && i < kCallers; ++i) {
    const CallerEntry& entry = g_callers[i];
    if (object != 0 && entry.caller.load(std::memory_order_acquire) == object) return entry.runtime;
  }
  refresh_modules();
  if (module_count() == 0) return nullptr;
  Module* const module = find_module(caller);
  int index = runtime_at_startup();
  if (index < 0 && module != nullptr) index = provider_of(*module);
  for (std::uint32_t i = 0; i < kMaxRuntimes && index < 0; ++i) {
    if (g_runtimes[i].present) index = static_cast<int>(i);
  }
  if (index < 0) return nullptr;
  const std::uint32_t at =
      object != 0 && module != nullptr ? g_caller_count.fetch_add(1, std::memory_order_acq_rel) : kCallers;
  if (at < kCallers) {
    g_callers[at].runtime = &g_runtimes[index];
    g_callers[at].caller.store(object, std::memory_order_release);
  }
  return &g_runtimes[index];
}

std::uint64_t entry_of(Runtime& runtime, OmpEntry entry) {
  std::uint64_t& address = runtime.entries[static_cast<std::size_t>(entry)];
  if (FORKSIGHT_UNLIKELY(address == 0)) {
    address = ElfView(runtime.bias, runtime.dynamic, Trust::kStaysLoaded)
                  .find_function(kEntryNames[static_cast<std::size_t>(entry)]);
  }
  return address;
}

std::uint64_t find_entry_by_loader(std::uint64_t caller, OmpEntry entry) {
  return find_by_loader(caller, kEntryNames[static_cast<std::size_t>(entry)]);
}

std::uint32_t count_workers(const Runtime& runtime, std::int32_t creator_tid, Slot** first) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (!is_worker(runtime, slot) || slot.creator_tid != creator_tid) continue;
    if (count++ == 0 && first != nullptr) *first = &slot;
  }
  return count;
}

void retire_workers(const Runtime& runtime, std::int32_t creator_tid) {
  for (std::uint32_t i = 0; i < slot_count(); ++i) {
    Slot& slot = slot_at(i);
    if (is_worker(runtime, slot) && slot.creator_tid == creator_tid) slot.is_retired = true;
  }
}

std::uint32_t count_all_workers(const Runtime& runtime) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < slot_count(); ++i) count += is_worker(runtime, slot_at(i)) ? 1U : 0U;
  return count;
}

Team predict_team(const Runtime& runtime, std::uint32_t clause, std::uint32_t sections) {
  if (runtime.get_max_active_levels != nullptr && runtime.get_active_level != nullptr &&
      runtime.get_active_level() >= runtime.get_max_active_levels()) {
    return {1, false};
  }
  std::uint32_t size = clause != 0 ? clause : static_cast<std::uint32_t>(runtime.get_max_threads());
  if (sections != 0 && sections < size) size = sections;
  if (runtime.get_thread_limit != nullptr) {
    const auto limit = static_cast<std::uint32_t>(runtime.get_thread_limit());
    if (limit < size) size = limit;
  }
  return {size < 1 ? 1 : size, runtime.get_dynamic != nullptr && runtime.get_dynamic() != 0};
}

}  // namespace forksight

// Included after the list of hooks, because the list contains names that house_rules.hpp forbids.
#include "guest/house_rules.hpp"
