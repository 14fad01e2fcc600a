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

constinit std::atomic<std::uint64_t> g_mpi_reals[kMpiEntries] = {};
FORKSIGHT_WRITTEN_AT_FORK constinit bool g_watch_mpi = false;

namespace {

using trace::MpiKind;

// Rows instead of pointers: pointers would be relocated at every start of every program.
constexpr std::size_t kNameBytes = 24;
constexpr char kNames[][kNameBytes] = {
#define FORKSIGHT_MPI_HOOK(name, words) #name,
#include "mpi/mpi_hooks.def"
};
static_assert(sizeof(trace::CudaFunctionRecord::name) >= kNameBytes);

// The MPI that is asked: the first library that exports both questions, by the names that no tool stands before.
struct Library {
  const link_map* map;  // null: none is loaded
  std::uint64_t bias;
  const ElfW(Dyn) * dynamic;
  Trust trust;
};
constinit Library g_library = {};
constinit bool g_mpi_is_live = false;  // as of the last fork
constinit std::atomic<std::int32_t> g_ucx_contexts{0};

constinit std::uint64_t g_fork_record = 0;  // in a watched child: the fork that it comes from
constinit std::atomic<std::uint64_t> g_touched{0};
static_assert(kMpiEntries <= 64);

bool says_yes(const ElfView& view, const char* question) {
  const std::uint64_t function = view.find_function(question);
  int flag = 0;
  return function != 0 && reinterpret_cast<int (*)(int*)>(function)(&flag) == 0 && flag != 0;
}

std::uint64_t bias_of_ucx() {
  const std::uint64_t function = g_mpi_reals[static_cast<std::uint32_t>(MpiEntry::ucp_init_version)];
  const Module* const module = function == 0 ? nullptr : find_module(function);
  return module == nullptr ? 0 : module->bias;
}

}  // namespace

bool is_mpi_name(const char* name) {
  for (const char* const known : kNames) {
    if (strcmp(known, name) == 0) return true;
  }
  return false;
}

std::uint64_t find_exported_mpi(MpiEntry entry) {
  std::atomic<std::uint64_t>& real = g_mpi_reals[static_cast<std::uint32_t>(entry)];
  if (const std::uint64_t known = real.load(std::memory_order_acquire)) return known;
  refresh_modules();
  for (std::uint32_t i = 0; i < module_count(); ++i) {
    const Module& module = module_at(i);
    if (module.end == 0) continue;
    const ElfView view(module.bias, module.dynamic, module.is_permanent ? Trust::kStaysLoaded : Trust::kNone);
    const std::uint64_t found = view.find_function(kNames[static_cast<std::uint32_t>(entry)]);
    if (found == 0 || is_in_shim(found)) continue;
    real.store(found, std::memory_order_release);
    // As good a reason to look at a fork as a thread is.
    g_had_threads.store(true, std::memory_order_release);
    return found;
  }
  return 0;
}

void note_ucx(std::int32_t change) { g_ucx_contexts.fetch_add(change, std::memory_order_relaxed); }

std::uint64_t touch_mpi(MpiEntry entry, std::uint64_t function, const Site& site) {
  const auto index = static_cast<std::uint32_t>(entry);
  const std::uint64_t bit = std::uint64_t{1} << index;
  // Once a function: a loop of them would fill the trace.
  if ((g_touched.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return 0;
  return begin_function_touch(trace::TouchKind::kMpiCall, g_fork_record, kNames[index], function, site);
}

void recognise_mpi(const Module& module) {
  if (g_library.map != nullptr) return;
  const Trust trust = module.is_permanent ? Trust::kStaysLoaded : Trust::kNone;
  const ElfView view(module.bias, module.dynamic, trust);
  if (view.find_function("PMPI_Initialized") == 0 || view.find_function("PMPI_Finalized") == 0) return;
  g_library = {module.map, module.bias, module.dynamic, trust};
}

void forget_mpi(const Module& module) {
  if (g_library.map == module.map && g_library.bias == module.bias) g_library = {};
}

// Asks MPI whether it is initialised, which it allows at any time and from any thread.
void at_fork::Mpi::enters(const Fork&) {
  if (g_library.map == nullptr || g_watch_mpi) return;
  const ElfView view(g_library.bias, g_library.dynamic, g_library.trust);
  g_mpi_is_live = says_yes(view, "PMPI_Initialized") && !says_yes(view, "PMPI_Finalized");
}

void at_fork::Mpi::records(const Fork& fork) {
  const std::uint64_t fork_record = fork.record;
  if (fork_record == 0) return;
  const std::uint32_t flags = g_watch_mpi ? trace::kMpiLost : 0U;
  if (g_mpi_is_live) {
    append(trace::RecordType::kMpi, trace::MpiRecord{fork_record, g_library.bias, MpiKind::kMpi, flags});
  }
  if (g_ucx_contexts.load(std::memory_order_relaxed) > 0) {
    append(trace::RecordType::kMpi, trace::MpiRecord{fork_record, bias_of_ucx(), MpiKind::kUcx, flags});
  }
}

void at_fork::Mpi::starts(const Fork& fork) {
  const std::uint64_t fork_record = fork.record;
  if (fork_record == 0 || (!g_mpi_is_live && g_ucx_contexts.load(std::memory_order_relaxed) <= 0)) return;
  g_fork_record = fork_record;
  g_touched.store(0, std::memory_order_relaxed);
  g_watch_mpi = true;
}

}  // namespace forksight
