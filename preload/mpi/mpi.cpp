#include "mpi/mpi.hpp"

#include <string.h>

#include "forksight/trace/cuda.hpp"
#include "forksight/trace/mpi.hpp"
#include "loader/elf_view.hpp"
#include "loader/loaded_object.hpp"
#include "record/function_touch.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

constinit WatchedFunction g_mpi_reals[kMpiEntries][kMpiWrappers] = {};
constinit std::atomic<bool> g_mpi_is_used{false};
FORKSIGHT_WRITTEN_AT_FORK constinit bool g_watch_mpi = false;

namespace {

using trace::MpiKind;

// The table contains the characters themselves, not pointers: the loader would have to relocate pointers at every start
// of every program.
constexpr std::size_t kNameBytes = 24;
constexpr char kNames[][kNameBytes] = {
#define FORKSIGHT_MPI_HOOK(name, words) #name,
#include "mpi/mpi_hooks.def"
};
static_assert(sizeof(trace::CudaFunctionRecord::name) >= kNameBytes);

// The copies of MPI that are asked at a fork: libraries that export PMPI_Initialized and PMPI_Finalized. No tool
// intercepts functions with the prefix PMPI.
struct Library {
  const link_map* map;  // null: none
  std::uint64_t bias;
  const ElfW(Dyn) * dynamic;
  Trust trust;
  bool is_live;  // initialised and not finalised at the last fork
};
constinit Library g_libraries[kMpiWrappers] = {};
// The function of UCX that took the slow path last; 0: none. This address shows which library is UCX.
constinit std::atomic<std::uint64_t> g_ucx_function{0};
constinit std::atomic<std::int32_t> g_ucx_contexts{0};

constinit std::uint64_t g_fork_record = 0;  // in a watched child: ref of the fork that made the child
constinit std::atomic<std::uint64_t> g_touched{0};
static_assert(kMpiEntries <= 64);

bool returns_true(const ElfView& view, const char* question) {
  const std::uint64_t function = view.find_function(question);
  int flag = 0;
  return function != 0 && reinterpret_cast<int (*)(int*)>(function)(&flag) == 0 && flag != 0;
}

std::uint64_t bias_of_ucx() {
  const std::uint64_t function = g_ucx_function.load(std::memory_order_relaxed);
  const Module* const module = function == 0 ? nullptr : find_module(function);
  return module == nullptr ? 0 : module->bias;
}

// Returns the index of the entry with this name; kMpiEntries if the name is not in the list.
std::uint32_t find_entry(const char* name) {
  std::uint32_t entry = 0;
  while (entry < kMpiEntries && strcmp(kNames[entry], name) != 0) ++entry;
  return entry;
}

// True if the library is still loaded, and no other library has taken its place.
bool is_loaded(const Library& library) {
  return library.map != nullptr && find_object(reinterpret_cast<std::uint64_t>(library.dynamic)).map == library.map;
}

bool has_library() {
  for (const Library& library : g_libraries) {
    if (library.map != nullptr) return true;
  }
  return false;
}

bool has_live_library() {
  for (const Library& library : g_libraries) {
    if (library.is_live) return true;
  }
  return false;
}

}  // namespace

bool is_mpi_name(const char* name) { return find_entry(name) != kMpiEntries; }

std::uint64_t wrap_mpi(const char* name, std::uint64_t function) {
  const std::uint32_t entry = find_entry(name);
  if (entry == kMpiEntries || function == 0 || is_in_shim(function)) return function;
  const std::uint32_t wrapper = claim_wrapper(g_mpi_reals[entry], function);
  return wrapper == kMpiWrappers ? function : mpi_wrapper(static_cast<MpiEntry>(entry), wrapper);
}

void note_mpi_use(MpiEntry entry, std::uint64_t function) {
  if (entry >= MpiEntry::ucp_init_version) g_ucx_function.store(function, std::memory_order_relaxed);
  g_mpi_is_used.store(true, std::memory_order_relaxed);
  // From now on forks are recorded, as after the start of a second thread.
  g_had_threads.store(true, std::memory_order_release);
}

void note_ucx(std::int32_t change) { g_ucx_contexts.fetch_add(change, std::memory_order_relaxed); }

std::uint64_t touch_mpi(MpiEntry entry, std::uint64_t function, const Site& site) {
  const auto index = static_cast<std::uint32_t>(entry);
  const std::uint64_t bit = std::uint64_t{1} << index;
  // Each function is recorded once, because a loop of calls would fill the trace.
  if ((g_touched.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return 0;
  return begin_function_touch(trace::TouchKind::kMpiCall, g_fork_record, kNames[index], function, site);
}

void recognise_mpi(const Module& module) {
  const Trust trust = module.is_permanent ? Trust::kStaysLoaded : Trust::kNone;
  const ElfView view(module.bias, module.dynamic, trust);
  if (view.find_function("PMPI_Initialized") == 0 || view.find_function("PMPI_Finalized") == 0) return;
  for (Library& library : g_libraries) {
    if (library.map != nullptr) continue;
    library = {module.map, module.bias, module.dynamic, trust, false};
    return;
  }
}

void forget_mpi(const Module& module) {
  for (Library& library : g_libraries) {
    if (library.map == module.map && library.bias == module.bias) library = {};
  }
  for (auto& row : g_mpi_reals) forget_closed(row, module.start, module.end);
}

// Asks each MPI whether it is initialised. MPI allows this question at any time and from any thread. The shim does not
// ask at a fork inside of libc (kInLibc), because it sees such a fork only after the other prepare handlers. One of
// these handlers may have taken a lock that the MPI needs for its answer.
void at_fork::Mpi::enters(const Fork& fork) {
  if (fork.kind != ForkKind::kWrapper) return;
  if (g_watch_mpi || (!has_library() && !g_mpi_is_used.load(std::memory_order_relaxed))) return;
  refresh_modules();
  for (Library& library : g_libraries) {
    if (!is_loaded(library)) continue;
    const ElfView view(library.bias, library.dynamic, library.trust);
    library.is_live = returns_true(view, "PMPI_Initialized") && !returns_true(view, "PMPI_Finalized");
  }
}

void at_fork::Mpi::records(const Fork& fork) {
  if (fork.record == 0) return;
  const std::uint32_t flags = g_watch_mpi ? trace::kMpiLost : 0U;
  for (const Library& library : g_libraries) {
    if (!library.is_live) continue;
    append(trace::RecordType::kMpi, trace::MpiRecord{fork.record, library.bias, MpiKind::kMpi, flags});
  }
  if (g_ucx_contexts.load(std::memory_order_relaxed) > 0) {
    append(trace::RecordType::kMpi, trace::MpiRecord{fork.record, bias_of_ucx(), MpiKind::kUcx, flags});
  }
}

void at_fork::Mpi::starts(const Fork& fork) {
  if (fork.record == 0 || (!has_live_library() && g_ucx_contexts.load(std::memory_order_relaxed) <= 0)) return;
  g_fork_record = fork.record;
  g_touched.store(0, std::memory_order_relaxed);
  g_watch_mpi = true;
}

}  // namespace forksight
