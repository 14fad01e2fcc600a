#include "cuda/cuda.hpp"

#include <dlfcn.h>
#include <string.h>

#include "cuda/cuda_ipc.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "loader/elf_view.hpp"
#include "loader/loaded_object.hpp"
#include "record/function_touch.hpp"
#include "record/thread_records.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

constinit WatchedFunction g_cuda_reals[kCudaEntries][kCudaWrappers] = {};
constinit std::atomic<trace::CudaWay> g_cuda_ways[kCudaEntries][kCudaWrappers] = {};
FORKSIGHT_WRITTEN_AT_FORK constinit bool g_watch_cuda = false;

namespace {

using trace::CudaWay;

// The table contains the characters themselves, not pointers: the loader would have to relocate pointers at every start
// of every program.
constexpr std::size_t kNameBytes = 32;
constexpr char kNames[][kNameBytes] = {
#define FORKSIGHT_CUDA_HOOK(name, words) #name,
#include "cuda/cuda_hooks.def"
};
static_assert(sizeof(trace::CudaFunctionRecord::name) >= kNameBytes);

constexpr int kNotInitialised = 3;  // CUDA_ERROR_NOT_INITIALIZED
constexpr std::size_t kInitStackBytes = 4096;
constexpr std::int32_t kMostDevices = 64;  // bits of active_contexts

// The library that is the driver: the first one that exports both cuInit and cuDriverGetVersion.
struct Driver {
  const link_map* map;  // null: none is loaded
  std::uint64_t bias;
  const ElfW(Dyn) * dynamic;
  std::uint64_t code;
  std::uint64_t code_end;
  Trust trust;
};
constinit Driver g_driver = {};

// The first successful cuInit of this process.
struct Init {
  std::atomic<std::uint32_t> stage;  // 0: none yet, 1: being written, 2: complete
  CudaWay way;
  std::int32_t tid;
  char thread[16];
  Site site;
  std::uint32_t bytes;
  bool cut;
  std::uint64_t stack_record;  // ref of the record of `stack` in this trace; 0: not written yet
  alignas(16) std::byte stack[kInitStackBytes];
};
constinit Init g_init = {};

// What the driver answered at the last fork at which the shim asked the driver.
struct Answers {
  bool is_initialised;
  bool asked;
  std::int32_t version;
  std::int32_t devices;
  std::uint64_t active_contexts;
};
constinit Answers g_answers = {false, false, 0, -1, 0};
constinit std::atomic<std::uint32_t> g_contexts_made{1};
constinit std::uint32_t g_contexts_asked = 0;

constinit std::uint64_t g_fork_record = 0;  // in a watched child: ref of the fork that made the child
constinit std::atomic<std::uint64_t> g_touched[(kCudaEntries + 63) / 64] = {};

// The length of a name without its endings. Names that the driver exports may end with the version of the interface
// (_v2) and the kind of default stream (_ptds, _ptsz). Programs call cuGetProcAddress with the name without these
// endings.
std::size_t base_length(const char* name) {
  std::size_t length = strlen(name);
  if (length > 5 && (strcmp(name + length - 5, "_ptds") == 0 || strcmp(name + length - 5, "_ptsz") == 0)) length -= 5;
  if (length > 3 && memcmp(name + length - 3, "_v", 2) == 0 && name[length - 1] >= '2' && name[length - 1] <= '9') {
    length -= 3;
  }
  return length;
}

// Returns the index of the entry with this name. If there is no such entry, returns the index of an entry whose name
// differs only in its endings. If there is no such entry either, returns kCudaEntries.
std::uint32_t find_entry(const char* name) {
  for (std::uint32_t i = 0; i < kCudaEntries; ++i) {
    if (strcmp(kNames[i], name) == 0) return i;
  }
  const std::size_t length = base_length(name);
  for (std::uint32_t i = 0; i < kCudaEntries; ++i) {
    if (base_length(kNames[i]) == length && memcmp(kNames[i], name, length) == 0) return i;
  }
  return kCudaEntries;
}

ElfView view_of(const Driver& driver) { return {driver.bias, driver.dynamic, driver.trust}; }

template <class... Arguments>
int ask(const ElfView& view, const char* name, int if_missing, Arguments... arguments) {
  const std::uint64_t function = view.find_function(name);
  return function == 0 ? if_missing : reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

// True if the thread may be inside of the driver: in a callback, or in a signal handler that interrupted a call. Then
// the shim must not call the driver, because the thread may hold the driver's locks. The answer is true if any word on
// the stack could be a return address into the driver.
bool may_be_inside_driver(const Slot& slot, const Site& site) {
  const StackBound bound = stack_bound(&slot, site.sp, slot.is_initial_stack ? 256U << 10U : 64U << 10U);
  if (bound.cut) return true;
  std::uint64_t words[32];
  for (std::size_t at = 0; at < bound.bytes; at += sizeof words) {
    const std::size_t wanted = bound.bytes - at < sizeof words ? bound.bytes - at : sizeof words;
    const auto* from = reinterpret_cast<const void*>(site.sp + at);
    if (bound.mapped) {
      memcpy(words, from, wanted);
    } else if (read_memory(from, words, wanted) != wanted) {
      return true;
    }
    for (std::size_t i = 0; i < wanted / sizeof words[0]; ++i) {
      if (words[i] > g_driver.code && words[i] <= g_driver.code_end) return true;
    }
  }
  return false;
}

bool is_known_initialised() { return g_answers.is_initialised || g_init.stage.load(std::memory_order_acquire) == 2; }

std::uint64_t record_init_stack() {
  if (g_init.stage.load(std::memory_order_acquire) != 2) return 0;
  if (g_init.stack_record == 0) {
    g_init.stack_record = append_saved_stack(g_init.site, g_init.stack, g_init.bytes, g_init.cut);
  }
  return g_init.stack_record;
}

}  // namespace

bool ask_cuda_active(std::uint64_t device) {
  unsigned flags = 0;
  int is_active = 0;
  return g_driver.map != nullptr &&
         ask<int, unsigned*, int*>(view_of(g_driver), "cuDevicePrimaryCtxGetState", kNotInitialised,
                                   static_cast<int>(device), &flags, &is_active) == 0 &&
         is_active != 0;
}

std::uint64_t ask_cuda_bytes(std::uint64_t address, std::uint64_t* base) {
  refresh_modules();
  if (g_driver.map == nullptr) return 0;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  if (ask<std::uint64_t*, std::uint64_t*, std::uint64_t>(view_of(g_driver), "cuMemGetAddressRange_v2", kNotInitialised,
                                                         &begin, &bytes, address) != 0 ||
      begin == 0) {
    return 0;
  }
  *base = begin;
  return bytes;
}

bool is_cuda_name(const char* name) { return find_entry(name) != kCudaEntries; }

std::uint64_t wrap_cuda(const char* name, std::uint64_t function, CudaWay way) {
  const std::uint32_t entry = find_entry(name);
  if (entry == kCudaEntries || function == 0 || is_in_shim(function)) return function;
  const std::uint32_t wrapper = claim_wrapper(g_cuda_reals[entry], function);
  if (wrapper == kCudaWrappers) return function;
  CudaWay unknown{};
  g_cuda_ways[entry][wrapper].compare_exchange_strong(unknown, way);
  return cuda_wrapper(static_cast<CudaEntry>(entry), wrapper);
}

void note_cuda_init(CudaWay way, const Site& site) {
  // Only the first success counts. In a child of an initialised parent, cuInit never succeeds.
  std::uint32_t expected = 0;
  if (!g_init.stage.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) return;
  const Slot* const slot = own_slot();
  g_init.way = way;
  g_init.tid = sys::gettid();
  if (slot != nullptr) memcpy(g_init.thread, slot->name, sizeof g_init.thread);
  g_init.site = site;
  const StackBound bound = stack_bound(slot, site.sp, kInitStackBytes);
  g_init.bytes = read_stack(site.sp, g_init.stack, bound);
  g_init.cut = bound.cut || g_init.bytes < bound.bytes;
  g_init.stage.store(2, std::memory_order_release);
  refresh_modules();
  note_cuda_context();
  // From now on forks are recorded, as after the start of a second thread.
  g_had_threads.store(true, std::memory_order_release);
}

void note_cuda_context() { g_contexts_made.fetch_add(1, std::memory_order_relaxed); }

std::uint64_t touch_cuda(CudaEntry entry, std::uint64_t function, const Site& site) {
  const auto index = static_cast<std::uint32_t>(entry);
  const std::uint64_t bit = std::uint64_t{1} << index % 64;
  // Each function is recorded once, because a loop of refused calls would fill the trace.
  if ((g_touched[index / 64].fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return 0;
  return begin_function_touch(trace::TouchKind::kCudaCall, g_fork_record, kNames[index], function, site);
}

void recognise_cuda(const Module& module) {
  if (g_driver.map != nullptr) return;
  const Trust trust = module.is_permanent ? Trust::kStaysLoaded : Trust::kNone;
  const ElfView view(module.bias, module.dynamic, trust);
  if (view.find_function("cuDriverGetVersion") == 0 || view.find_function("cuInit") == 0) return;
  g_driver = {module.map, module.bias, module.dynamic, module.code, module.code_end, trust};
}

void forget_cuda(const Module& module) {
  if (g_driver.map == module.map && g_driver.bias == module.bias) g_driver = {};
  for (auto& row : g_cuda_reals) forget_closed(row, module.start, module.end);
}

// Asks the driver at the beginning of fork(). The program itself could call the driver at this moment, so the shim may
// call it, too. Later, in the prepare handlers, this thread may hold locks of other libraries. Another thread may wait
// for these locks while it holds the driver's locks. Then a call of the driver would never return.
void at_fork::Cuda::enters(const Fork& fork) {
  if (fork.kind != ForkKind::kWrapper) return;
  if (module_count() == 0) refresh_modules();
  if (g_driver.map == nullptr || g_watch_cuda) return;
  const std::uint32_t made = g_contexts_made.load(std::memory_order_relaxed);
  if (g_answers.is_initialised && g_contexts_asked == made) return;
  if (may_be_inside_driver(fork.self, fork.self.fork_site)) return;
  const ElfView view = view_of(g_driver);
  Answers answers{false, true, 0, -1, 0};
  ask<int*>(view, "cuDriverGetVersion", 0, &answers.version);
  const int counted = ask<int*>(view, "cuDeviceGetCount", kNotInitialised, &answers.devices);
  answers.is_initialised = counted != kNotInitialised;
  if (counted != 0) answers.devices = -1;
  for (std::int32_t i = 0; i < answers.devices && i < kMostDevices; ++i) {
    int device = 0;
    unsigned flags = 0;
    int is_active = 0;
    if (ask<int*, int>(view, "cuDeviceGet", kNotInitialised, &device, i) != 0) continue;
    if (ask<int, unsigned*, int*>(view, "cuDevicePrimaryCtxGetState", kNotInitialised, device, &flags, &is_active) != 0)
      continue;
    if (is_active != 0) answers.active_contexts |= std::uint64_t{1} << static_cast<unsigned>(i);
  }
  g_answers = answers;
  g_contexts_asked = made;
}

void at_fork::Cuda::records(const Fork& fork) {
  const bool is_initialised = is_known_initialised();
  if (fork.record == 0 || (g_driver.map == nullptr && !is_initialised)) return;
  trace::CudaRecord record{};
  record.fork = fork.record;
  record.module_bias = g_driver.bias;
  record.init_stack = record_init_stack();
  if (g_init.stage.load(std::memory_order_acquire) == 2) {
    record.init_way = g_init.way;
    record.init_tid = g_init.tid;
    memcpy(record.init_thread, g_init.thread, sizeof record.init_thread);
  }
  const bool is_current = g_answers.asked && g_contexts_asked == g_contexts_made.load(std::memory_order_relaxed);
  record.driver_version = g_answers.version;
  record.devices = g_answers.devices;
  record.active_contexts = g_answers.active_contexts;
  record.flags = (is_initialised ? trace::kCudaInitialised : 0U) | (is_current ? trace::kCudaAsked : 0U) |
                 (g_watch_cuda ? trace::kCudaLost : 0U);
  append(trace::RecordType::kCuda, record);
}

// Begins to watch the child if the driver was initialised in its parent. The shim does not ask the driver in the child.
// It relies on what the parent knew at the fork.
void at_fork::Cuda::starts(const Fork& fork) {
  if (fork.record == 0 || !is_known_initialised()) return;
  g_fork_record = fork.record;
  for (auto& word : g_touched) word.store(0, std::memory_order_relaxed);
  g_watch_cuda = true;
}

}  // namespace forksight
