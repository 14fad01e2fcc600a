#include "openmp/omp_policy.hpp"

#include <dlfcn.h>
#include <string.h>

#include "guest/config.hpp"
#include "guest/sys.hpp"
#include "loader/elf_view.hpp"
#include "loader/next.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

FORKSIGHT_WRITTEN_AT_FORK constinit bool g_watch_regions = false;

namespace {

using trace::CureMethod;
using trace::CureResult;
using trace::OmpPolicy;
using trace::RuntimeKind;

constexpr int kPauseHard = 2;  // omp_pause_hard, OpenMP 5.0
// OpenBLAS has frames of twenty KiB between a program and the region.
constexpr std::size_t kStackBytes = 64U << 10U;

enum class WatchMode : std::uint8_t { kNone, kLost, kClamped, kCured };

// What happened to one runtime of the forking thread at the fork that made this process, and which cure was applied.
struct Watch {
  WatchMode mode;
  CureMethod method;
  bool is_restore_due;
  std::int32_t max_threads;  // of the forking thread, before a clamp
  std::uint64_t fork_record;
  std::uint64_t runtime_record;
};
constinit Watch g_watches[kMaxRuntimes] = {};
constinit const Slot* g_watched_thread = nullptr;

// Regions of the watched thread that one call enters and another one leaves (GOMP_parallel_start, GOMP_parallel_end).
// `guard` is that of the outermost region that touched something. `depth` counts that region and the regions inside it.
struct SplitRegion {
  RegionGuard guard;
  std::uint32_t depth;
};
constinit SplitRegion g_split = {};

// The calling thread's TLS block of a runtime; 0: not found. Takes no lock and allocates nothing.
std::uint64_t find_tls_block(const Runtime& runtime) {
  if (runtime.tls_bytes == 0) return 0;
  std::int64_t offset = 0;
  const auto thread_pointer = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  // Every libgomp is built with the initial-exec model.
  if (ElfView(runtime.bias, runtime.dynamic, Trust::kStaysLoaded).find_static_tls_offset(offset)) {
    return thread_pointer + static_cast<std::uint64_t>(offset);
  }
  void* block = nullptr;
  using Inform = int (*)(void* handle, int request, void* to);
  const auto inform = reinterpret_cast<Inform>(find_next("dlinfo"));
  const auto* map = reinterpret_cast<const void*>(runtime.map);
  if (inform == nullptr || inform(const_cast<void*>(map), RTLD_DI_TLS_DATA, &block) != 0) return 0;
  return reinterpret_cast<std::uint64_t>(block);
}

// True if libgomp's data of this thread point to a task or team on the thread's own stack. Then a function of libgomp
// is still running on that stack (an undeferred explicit task). If these data were reset, that function would fail when
// it continues.
bool points_to_own_stack(const Runtime& runtime, std::uint64_t block, const Slot& slot) {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= runtime.tls_bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t value = 0;
    memcpy(&value, reinterpret_cast<const void*>(block + at), sizeof value);
    if (value >= here && value < slot.stack_top) return true;
  }
  return false;
}

// The conditions of each cure. If one does not hold, the cure is refused. Between the first prepare handler and the
// return of fork() in the child, the shim calls no function of a runtime that may allocate or wait, because the
// allocator's own handlers may hold the allocator's locks.
//
//   rebuild: the library is libgomp and nothing else. A program or plugin that has libgomp linked in has other data in
//     the same thread-local block. In addition, the shim must find the block, and the block must not point into this
//     thread's stack.
//   quiesce: at the beginning of fork(), a call of the runtime has ended the pool. A later call would be wrong: the
//     workers run their destructors, which may need locks that a prepare handler takes.
//   clamp: the library is libgomp and nothing else, so that each region of the child passes through the shim's hooks.
CureResult prove_rebuild(const Runtime& runtime, const RuntimeAtFork& at_fork, const Slot& slot) {
  const bool proven = runtime.is_all_libgomp && at_fork.tls_block != 0 && slot.stack_top != 0 &&
                      !points_to_own_stack(runtime, at_fork.tls_block, slot);
  return proven ? CureResult::kApplied : CureResult::kRefusedNoImage;
}

CureResult prove_clamp(const Runtime& runtime) {
  return runtime.is_all_libgomp ? CureResult::kApplied : CureResult::kRefusedByRuntime;
}

// True if the pool is to be ended before the fork: with --omp=quiesce, and with --omp=auto if the pool cannot be
// rebuilt. --omp=auto prefers rebuild to quiesce, and quiesce to clamp. Rebuilding changes only the child's own copy of
// a pool that is lost anyway. Quiescing uses libgomp's own interface, but the parent loses its pool and the pool's
// threadprivate data. After clamping, the child has no parallel threads.
bool wants_quiesce(const Runtime& runtime, const RuntimeAtFork& at_fork, const Slot& slot) {
  if (g_config.omp != OmpPolicy::kAuto) return g_config.omp == OmpPolicy::kQuiesce;
  return prove_rebuild(runtime, at_fork, slot) != CureResult::kApplied;
}

void choose_cure(const Runtime& runtime, RuntimeAtFork& at_fork, const Slot& slot) {
  const auto take = [&](CureMethod method, CureResult result) {
    at_fork.method = method;
    at_fork.result = result;
    return result == CureResult::kApplied;
  };
  switch (g_config.omp) {
    case OmpPolicy::kClamp: take(CureMethod::kClamp, prove_clamp(runtime)); return;
    case OmpPolicy::kQuiesce: take(CureMethod::kQuiesce, CureResult::kRefusedByRuntime); return;
    case OmpPolicy::kRebuild: take(CureMethod::kRebuild, prove_rebuild(runtime, at_fork, slot)); return;
    default: break;
  }
  if (take(CureMethod::kRebuild, prove_rebuild(runtime, at_fork, slot))) return;
  if (take(CureMethod::kClamp, prove_clamp(runtime))) return;
  take(CureMethod::kRebuild, CureResult::kRefusedNoImage);
}

// Chooses the cure of this runtime, or notes why no cure is possible. Called in the shim's prepare handler. `level`:
// the number of parallel regions, active or serialised, that the thread is inside of. `is_lost`: the thread still has a
// pool, which the fork will lose.
void prepare_cure(const Runtime& runtime, RuntimeAtFork& at_fork, const Slot& slot, std::int32_t level, bool is_lost) {
  if (g_config.omp == OmpPolicy::kObserve) return;
  at_fork.due = true;
  if (level > 0) {
    at_fork.method = g_config.omp == OmpPolicy::kClamp     ? CureMethod::kClamp
                     : g_config.omp == OmpPolicy::kQuiesce ? CureMethod::kQuiesce
                                                           : CureMethod::kRebuild;
    at_fork.result = CureResult::kRefusedInRegion;
  } else if (is_lost) {
    at_fork.tls_block = find_tls_block(runtime);
    choose_cure(runtime, at_fork, slot);
  } else {
    at_fork.method = CureMethod::kQuiesce;
    at_fork.result = CureResult::kApplied;
  }
}

std::uint64_t record_thread_of(Slot* worker) { return worker == nullptr ? 0 : worker->record; }

// For each runtime: the contents of the forking thread's block before the rebuild. They are kept only if the block is
// small enough (libgomp 12: 0x98 bytes).
constexpr std::size_t kMostKeptWords = 32;
constinit std::uint64_t g_kept_blocks[kMaxRuntimes][kMostKeptWords] = {};

bool is_block_kept(const Runtime& runtime) { return runtime.tls_bytes <= sizeof g_kept_blocks[0]; }

void rebuild(const Runtime& runtime, const RuntimeAtFork& at_fork, std::uint32_t index) {
  auto* const block = reinterpret_cast<std::byte*>(at_fork.tls_block);
  if (is_block_kept(runtime)) memcpy(g_kept_blocks[index], block, runtime.tls_bytes);
  memcpy(block, runtime.tls_image, runtime.tls_image_bytes);
  memset(block + runtime.tls_image_bytes, 0, runtime.tls_bytes - runtime.tls_image_bytes);
}

// Finds the word in which the block differs from the block of a new thread. When a setting is first changed, libgomp
// fills exactly one word: its pointer to the task that has all settings of the thread. Returns null if no word differs,
// or if several words differ.
std::uint64_t* find_settings(const Runtime& runtime, std::uint64_t block) {
  std::uint64_t* found = nullptr;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= runtime.tls_bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t fresh = 0;
    if (at < runtime.tls_image_bytes) {
      const std::size_t rest = runtime.tls_image_bytes - at;
      memcpy(&fresh, static_cast<const std::byte*>(runtime.tls_image) + at, rest < sizeof fresh ? rest : sizeof fresh);
    }
    auto* const word = reinterpret_cast<std::uint64_t*>(block + at);
    if (*word == fresh) continue;
    if (found != nullptr) return nullptr;
    found = word;
  }
  return found;
}

// Restores the thread's settings (number of threads, schedule, thread limit, nesting, ...), which the rebuild has
// reset. libgomp allocates here, so this function must run after the allocator's own child handler.
void restore_settings(const Runtime& runtime, const RuntimeAtFork& at_fork, std::uint32_t index) {
  if (runtime.set_num_threads == nullptr) return;
  const bool is_fresh = is_block_kept(runtime) && find_settings(runtime, at_fork.tls_block) == nullptr;
  if (is_fresh) {
    runtime.set_num_threads(at_fork.max_threads);
    if (std::uint64_t* const settings = find_settings(runtime, at_fork.tls_block); settings != nullptr) {
      *settings =
          g_kept_blocks[index][(reinterpret_cast<std::uint64_t>(settings) - at_fork.tls_block) / sizeof *settings];
      return;
    }
  }
  if (runtime.get_max_threads() != at_fork.max_threads) runtime.set_num_threads(at_fork.max_threads);
  if (runtime.set_dynamic != nullptr && runtime.get_dynamic != nullptr &&
      (runtime.get_dynamic() != 0) != at_fork.dynamic) {
    runtime.set_dynamic(at_fork.dynamic ? 1 : 0);
  }
  if (runtime.set_max_active_levels != nullptr && runtime.get_max_active_levels != nullptr &&
      runtime.get_max_active_levels() != at_fork.max_active_levels) {
    runtime.set_max_active_levels(at_fork.max_active_levels);
  }
}

// Completes the cure of one runtime in the child. This is the part of the cure that calls functions of the runtime,
// which may allocate.
void restore(std::uint32_t index, const RuntimeAtFork& at_fork) {
  const Runtime& runtime = runtime_at(index);
  if (!g_watches[index].is_restore_due || !runtime.present) return;
  g_watches[index].is_restore_due = false;
  if (at_fork.method == CureMethod::kRebuild) restore_settings(runtime, at_fork, index);
  // omp_get_max_threads() must agree with the size of the teams. OpenBLAS calls this function first. Then it spins
  // until the other threads of the team have come.
  if (at_fork.method == CureMethod::kClamp && runtime.set_num_threads != nullptr) runtime.set_num_threads(1);
}

// Applies the part of the cure that calls no function of the runtime, records what was done, and begins to watch
// regions of this runtime.
void begin_watch(Runtime& runtime, const RuntimeAtFork& at_fork, std::uint64_t fork_record, std::uint32_t index) {
  Watch& watch = g_watches[index];
  watch = {WatchMode::kLost, at_fork.method, false, at_fork.max_threads, fork_record, at_fork.record};
  if (at_fork.due) {
    if (at_fork.result == CureResult::kApplied) {
      watch.mode = at_fork.method == CureMethod::kClamp ? WatchMode::kClamped : WatchMode::kCured;
      watch.is_restore_due = at_fork.method != CureMethod::kQuiesce;
      if (at_fork.method == CureMethod::kRebuild) rebuild(runtime, at_fork, index);
    }
    append(trace::RecordType::kCure,
           trace::CureRecord{fork_record, at_fork.record, at_fork.method, at_fork.result, 0, 0, 0, 0, 0});
  }
  g_watch_regions = true;
}

// Ends the pools whose cure is quiesce, by a call of their runtime.
void quiesce_pools(Slot& forking) {
  if (g_config.omp == OmpPolicy::kObserve) return;
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) {
    const Runtime& runtime = runtime_at(i);
    RuntimeAtFork& at_fork = forking.runtimes[i];
    if (!runtime.present || runtime.kind != RuntimeKind::kLibgomp || at_fork.workers_before == 0) continue;
    if (runtime.pause_all == nullptr || (runtime.get_level != nullptr && runtime.get_level() > 0)) continue;
    at_fork.tls_block = find_tls_block(runtime);
    if (!wants_quiesce(runtime, at_fork, forking) || runtime.pause_all(kPauseHard) != 0) continue;
    at_fork.is_quiesced = true;
    retire_workers(runtime, forking.tid);
  }
}

}  // namespace

void at_fork::OpenMp::enters(const Fork& fork) {
  Slot& forking = fork.self;
  if (module_count() == 0) refresh_modules();  // the first fork of the process
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) {
    const Runtime& runtime = runtime_at(i);
    RuntimeAtFork& at_fork = forking.runtimes[i];
    at_fork.workers_before = runtime.present ? count_workers(runtime, forking.tid, nullptr) : 0;
    at_fork.is_quiesced = false;
  }
  if (fork.kind == ForkKind::kWrapper) quiesce_pools(forking);
}

// Chooses the cures, and writes the kRuntime records.
void at_fork::OpenMp::prepares(Fork& fork) {
  Slot* const forking = &fork.self;
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) {
    Runtime& runtime = runtime_at(i);
    RuntimeAtFork& at_fork = forking->runtimes[i];
    at_fork = {0, 0, at_fork.workers_before, 0, {}, {}, false, at_fork.is_quiesced, false, -1, -1};
    if (!runtime.present) continue;
    const bool is_libgomp = runtime.kind == RuntimeKind::kLibgomp;
    Slot* first = nullptr;
    at_fork.workers_lost = count_workers(runtime, forking->tid, &first);
    const std::uint64_t first_record = record_thread_of(first);
    std::int32_t level = -1;
    // LLVM's runtime is asked only if it has workers, because a question would initialise a runtime that is not in use.
    if (is_libgomp || at_fork.workers_lost > 0) {
      level = runtime.get_level != nullptr ? runtime.get_level() : -1;
      at_fork.max_threads = runtime.get_max_threads();
    }
    if (runtime.get_dynamic != nullptr && is_libgomp) at_fork.dynamic = runtime.get_dynamic() != 0;
    if (runtime.get_max_active_levels != nullptr && is_libgomp)
      at_fork.max_active_levels = runtime.get_max_active_levels();
    const bool is_lost = at_fork.workers_lost > 0;
    if (is_libgomp && (is_lost || level > 0 || at_fork.is_quiesced)) {
      prepare_cure(runtime, at_fork, *forking, level, is_lost);
    }
    at_fork.record =
        append(trace::RecordType::kRuntime,
               trace::RuntimeRecord{runtime.bias, runtime.kind,
                                    (level > 0 ? trace::kInParallel : 0U) | (is_libgomp ? 0U : trace::kRebuildsItself),
                                    at_fork.max_threads, level, at_fork.workers_before, at_fork.workers_lost,
                                    first_record, count_all_workers(runtime)});
    ++fork.runtimes;
  }
}

void at_fork::OpenMp::starts(const Fork& fork) {
  if (fork.kind == ForkKind::kBypassed) return;
  Slot* const forking = &fork.self;
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) {
    Runtime& runtime = runtime_at(i);
    const RuntimeAtFork& at_fork = forking->runtimes[i];
    if (!runtime.present || runtime.kind != RuntimeKind::kLibgomp) continue;
    if (at_fork.workers_lost == 0 && !at_fork.due) continue;
    g_watched_thread = forking;
    begin_watch(runtime, at_fork, forking->fork_record, i);
  }
}

// Completes the cures, by calls of the runtimes that may allocate.
void at_fork::OpenMp::leaves(const Fork& fork) {
  Slot* const forking = &fork.self;
  if (!g_watch_regions || forking != g_watched_thread) return;
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) restore(i, forking->runtimes[i]);
}

RegionGuard enter_watched_region(Runtime& runtime, const Region& region, const Site& site) {
  const std::uint32_t clause = region.clause;
  const auto index = static_cast<std::uint32_t>(&runtime - &runtime_at(0));
  Watch& watch = g_watches[index];
  if (watch.is_restore_due && t_slot == g_watched_thread) restore(index, t_slot->runtimes[index]);
  if (watch.mode == WatchMode::kNone || t_slot != g_watched_thread || t_slot == nullptr) return {0, clause};
  const bool clamped = watch.mode == WatchMode::kClamped;
  const Team predicted = predict_team(runtime, clause, region.sections);
  std::uint32_t team = predicted.size;
  if (clamped && clause == 0 && watch.max_threads > 0) team = static_cast<std::uint32_t>(watch.max_threads);
  const std::uint32_t allowed = clamped ? 1 : clause;
  if (team < 2) return {0, allowed};
  if (watch.mode == WatchMode::kLost) {
    const std::uint64_t stack = append_stack(site, t_slot, kStackBytes, false, Importance::kFinding);
    const trace::TouchRecord touch{watch.fork_record,
                                   trace::TouchKind::kParallel,
                                   trace::TouchAction::kNone,
                                   0,
                                   watch.runtime_record,
                                   entry_of(runtime, region.entry),
                                   stack,
                                   team,
                                   clause,
                                   predicted.is_guess ? trace::kTouchTeamGuess : 0U,
                                   0};
    return {append(trace::RecordType::kTouch, touch, Importance::kFinding), allowed};
  }
  // The pool was cured. The first region that would have hung is recorded, once.
  if (watch.fork_record != 0) {
    const std::uint64_t stack = append_stack(site, t_slot, kStackBytes, false, Importance::kFinding);
    append(trace::RecordType::kCure,
           trace::CureRecord{watch.fork_record, watch.runtime_record, watch.method, CureResult::kApplied, stack, 1,
                             clause, team, 0},
           Importance::kFinding);
    watch.fork_record = 0;
  }
  if (!clamped) watch.mode = WatchMode::kNone;
  return {0, allowed};
}

void enter_split_region(const RegionGuard& guard) {
  if (t_slot != g_watched_thread || (guard.touch == 0 && g_split.depth == 0)) return;
  if (g_split.depth++ == 0) {
    g_split.guard = guard;
  } else {
    leave_watched_region(guard);  // this region is inside of the outermost one, whose guard is kept
  }
}

void leave_split_region() {
  if (t_slot != g_watched_thread || g_split.depth == 0) return;
  if (--g_split.depth == 0) leave_watched_region(g_split.guard);
}

void leave_watched_region(const RegionGuard& guard) {
  if (guard.touch != 0)
    append(trace::RecordType::kTouchEnd, trace::TouchEndRecord{guard.touch, 0, 0}, Importance::kFinding);
}

}  // namespace forksight
