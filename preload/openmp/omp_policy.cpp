#include "openmp/omp_policy.hpp"

#include <dlfcn.h>
#include <string.h>

#include "guest/config.hpp"
#include "guest/sys.hpp"
#include "loader/elf_view.hpp"
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

// What became of one runtime of the forking thread in this process.
struct Watch {
  WatchMode mode;
  CureMethod method;
  std::int32_t max_threads;  // of the forking thread, before a clamp
  std::uint64_t fork_record;
  std::uint64_t runtime_record;
};
constinit Watch g_watches[kMaxRuntimes] = {};
constinit const Slot* g_watched_thread = nullptr;

// A region that is entered by one call and left by another (GOMP_parallel_start, GOMP_parallel_end), of the watched
// thread: the outermost that touched something, and how many were entered since.
struct SplitRegion {
  RegionGuard guard;
  std::uint32_t depth;
};
constinit SplitRegion g_split = {};

// The calling thread's TLS block of a library. No lock and no allocation.
std::uint64_t find_tls_block(const Runtime& runtime) {
  if (runtime.tls_bytes == 0) return 0;
  std::int64_t offset = 0;
  const auto thread_pointer = reinterpret_cast<std::uint64_t>(__builtin_thread_pointer());
  // Every libgomp is built with the initial-exec model.
  if (ElfView(runtime.bias, runtime.dynamic, Trust::kStaysLoaded).find_static_tls_offset(offset)) {
    return thread_pointer + static_cast<std::uint64_t>(offset);
  }
  void* block = nullptr;
  const auto* map = reinterpret_cast<const void*>(runtime.map);
  if (dlinfo(const_cast<void*>(map), RTLD_DI_TLS_DATA, &block) != 0) return 0;
  return reinterpret_cast<std::uint64_t>(block);
}

// libgomp's per-thread state may point to a task or team on this thread's own stack: then it is in the middle of
// something that returns into it (an undeferred explicit task), and wiping it would break that return.
bool points_to_own_stack(const Runtime& runtime, std::uint64_t block, const Slot& slot) {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= runtime.tls_bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t value = 0;
    memcpy(&value, reinterpret_cast<const void*>(block + at), sizeof value);
    if (value >= here && value < slot.stack_top) return true;
  }
  return false;
}

bool rebuild_is_possible(const Runtime& runtime, const RuntimeAtFork& at_fork, const Slot& slot) {
  return at_fork.tls_block != 0 && slot.stack_top != 0 && !points_to_own_stack(runtime, at_fork.tls_block, slot);
}

CureMethod choose_method(const Runtime& runtime, const RuntimeAtFork& at_fork, const Slot& slot) {
  switch (g_config.omp) {
    case OmpPolicy::kClamp: return CureMethod::kClamp;
    case OmpPolicy::kQuiesce: return CureMethod::kQuiesce;
    case OmpPolicy::kRebuild: return CureMethod::kRebuild;
    default: break;
  }
  // Rebuilding touches nothing but the child's own copy of a pool that is lost anyway. Quiescing is libgomp's own
  // interface, but takes the parent's pool and its threadprivate data. Clamping costs the child its threads.
  if (rebuild_is_possible(runtime, at_fork, slot)) return CureMethod::kRebuild;
  return runtime.pause_all != nullptr ? CureMethod::kQuiesce : CureMethod::kClamp;
}

void prepare_cure(Runtime& runtime, RuntimeAtFork& at_fork, Slot& slot, std::int32_t level) {
  if (g_config.omp == OmpPolicy::kObserve) return;
  at_fork.tls_block = find_tls_block(runtime);
  at_fork.method = choose_method(runtime, at_fork, slot);
  at_fork.due = true;
  at_fork.result = CureResult::kApplied;
  if (level > 0) {
    at_fork.result = CureResult::kRefusedInRegion;
    return;
  }
  if (at_fork.method == CureMethod::kRebuild && !rebuild_is_possible(runtime, at_fork, slot)) {
    at_fork.result = CureResult::kRefusedNoImage;
  }
  if (at_fork.method == CureMethod::kQuiesce) {
    if (runtime.pause_all == nullptr || runtime.pause_all(kPauseHard) != 0) {
      at_fork.result = CureResult::kRefusedByRuntime;
    } else {
      retire_workers(runtime, slot.tid);
      at_fork.workers_lost = 0;
    }
  }
}

std::uint64_t record_thread_of(Slot* worker) { return worker == nullptr ? 0 : worker->record; }

// The forking thread's block as it was, where it is small enough (libgomp 12: 0x98 bytes), by runtime.
constexpr std::size_t kMostKeptWords = 32;
constinit std::uint64_t g_kept_blocks[kMaxRuntimes][kMostKeptWords] = {};

bool is_kept(const Runtime& runtime) { return runtime.tls_bytes <= sizeof g_kept_blocks[0]; }

void rebuild(const Runtime& runtime, const RuntimeAtFork& at_fork, std::uint32_t index) {
  auto* const block = reinterpret_cast<std::byte*>(at_fork.tls_block);
  if (is_kept(runtime)) memcpy(g_kept_blocks[index], block, runtime.tls_bytes);
  memcpy(block, runtime.tls_image, runtime.tls_image_bytes);
  memset(block + runtime.tls_image_bytes, 0, runtime.tls_bytes - runtime.tls_image_bytes);
}

// The word of a new thread's block that libgomp fills when a setting is changed for the first time: its pointer to the
// task that has all of the thread's settings. Null if it is not exactly one word.
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

// What the thread had set (number of threads, schedule, thread limit, nesting, ...) was wiped with the rest. libgomp
// allocates: not before the allocator's own child handler has run.
void restore_settings(const Runtime& runtime, const RuntimeAtFork& at_fork, std::uint32_t index) {
  if (runtime.set_num_threads == nullptr) return;
  const bool is_fresh = is_kept(runtime) && find_settings(runtime, at_fork.tls_block) == nullptr;
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

void settle(Runtime& runtime, const RuntimeAtFork& at_fork, std::uint64_t fork_record, std::uint32_t index) {
  Watch& watch = g_watches[index];
  watch = {WatchMode::kLost, at_fork.method, at_fork.max_threads, fork_record, at_fork.record};
  if (at_fork.due) {
    if (at_fork.result == CureResult::kApplied) {
      watch.mode = WatchMode::kCured;
      if (at_fork.method == CureMethod::kRebuild) rebuild(runtime, at_fork, index);
      if (at_fork.method == CureMethod::kClamp) {
        watch.mode = WatchMode::kClamped;
      }
    }
    append(trace::RecordType::kCure,
           trace::CureRecord{fork_record, at_fork.record, at_fork.method, at_fork.result, 0, 0, 0, 0, 0});
  }
  g_watch_regions = true;
}

}  // namespace

void at_fork::OpenMp::enters(const Fork& fork) {
  Slot* const forking = &fork.self;
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) {
    const Runtime& runtime = runtime_at(i);
    forking->runtimes[i].workers_before = runtime.present ? count_workers(runtime, forking->tid, nullptr) : 0;
  }
}

// Chooses the cures, applies those that belong into the parent, and writes the kRuntime records.
void at_fork::OpenMp::prepares(Fork& fork) {
  Slot* const forking = &fork.self;
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) {
    Runtime& runtime = runtime_at(i);
    RuntimeAtFork& at_fork = forking->runtimes[i];
    at_fork = {0, 0, at_fork.workers_before, 0, {}, {}, false, false, -1, -1};
    if (!runtime.present) continue;
    const bool is_libgomp = runtime.kind == RuntimeKind::kLibgomp;
    Slot* first = nullptr;
    at_fork.workers_lost = count_workers(runtime, forking->tid, &first);
    const std::uint64_t first_record = record_thread_of(first);
    std::int32_t level = -1;
    // A runtime is asked only where it has been used: asking initialises LLVM's, and an idle one needs no answer.
    if (is_libgomp || at_fork.workers_lost > 0) {
      level = runtime.get_level != nullptr ? runtime.get_level() : -1;
      at_fork.max_threads = runtime.get_max_threads();
    }
    if (runtime.get_dynamic != nullptr && is_libgomp) at_fork.dynamic = runtime.get_dynamic() != 0;
    if (runtime.get_max_active_levels != nullptr && is_libgomp)
      at_fork.max_active_levels = runtime.get_max_active_levels();
    if (is_libgomp && (at_fork.workers_lost > 0 || level > 0)) prepare_cure(runtime, at_fork, *forking, level);
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
    settle(runtime, at_fork, forking->fork_record, i);
  }
}

// The part of it that allocates.
void at_fork::OpenMp::leaves(const Fork& fork) {
  Slot* const forking = &fork.self;
  if (!g_watch_regions || forking != g_watched_thread) return;
  for (std::uint32_t i = 0; i < kMaxRuntimes; ++i) {
    const RuntimeAtFork& at_fork = forking->runtimes[i];
    const bool is_rebuilt = runtime_at(i).present && at_fork.due && at_fork.method == CureMethod::kRebuild &&
                            at_fork.result == CureResult::kApplied;
    if (is_rebuilt) restore_settings(runtime_at(i), at_fork, i);
    // What the runtime says it would give must agree with what it gives: OpenBLAS asks first, then spins for the
    // partner that it was promised.
    const bool is_clamped = runtime_at(i).present && g_watches[i].mode == WatchMode::kClamped;
    if (is_clamped && runtime_at(i).set_num_threads != nullptr) runtime_at(i).set_num_threads(1);
  }
}

RegionGuard enter_watched_region(Runtime& runtime, const Region& region, const Site& site) {
  const std::uint32_t clause = region.clause;
  Watch& watch = g_watches[&runtime - &runtime_at(0)];
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
  // Cured: said once, with the region that would have hung.
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
    leave_watched_region(guard);  // it is inside of the other
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
