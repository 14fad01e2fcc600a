#include "diagnose/openmp.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "diagnose/words.hpp"

namespace forksight::openmp {

namespace {

constexpr std::uint32_t kSmallestTeam = 2;  // a team of one needs no pool

bool is_c_source(std::string_view file) {
  for (const std::string_view suffix : {".c", ".cc", ".cpp", ".cxx", ".C", ".h", ".hpp"}) {
    if (file.ends_with(suffix)) return true;
  }
  return false;
}

}  // namespace

const model::Pool* find_lost_pool(const model::Model& model, const model::Touch& touch) {
  if (touch.kind != model::TouchKind::kParallel || !touch.pool) return nullptr;
  const model::Pool& pool = model.pools[*touch.pool];
  if (pool.kind != model::RuntimeKind::kLibgomp || pool.rebuilds_itself ||
      (touch.team != 0 && touch.team < kSmallestTeam))
    return nullptr;
  // If a cure ended all workers before the fork, no worker was lost.
  return pool.in_region || pool.workers_lost > 0 || touch.cured ? &pool : nullptr;
}

const model::Pool* find_other_runtime(const model::Model& model, const model::Fork& fork) {
  for (const model::PoolId id : fork.pools) {
    if (model.pools[id].rebuilds_itself) return &model.pools[id];
  }
  return nullptr;
}

bool is_team_in_region(const model::Pool& pool) { return pool.in_region && pool.workers_lost > 0; }

std::string region(const model::Touch& touch) {
  const model::Frame* const frame = words::find_user_frame(touch.stack);
  const std::string name =
      frame != nullptr && is_c_source(frame->file) ? "#pragma omp parallel" : "an OpenMP parallel region";
  const std::string where = words::place(touch.stack);
  return where.empty() ? name : fmt::format("{} ({})", name, where);
}

std::string size(const model::Touch& touch) {
  return touch.team == 0 ? "a parallel region" : fmt::format("a parallel region for {} threads", touch.team);
}

std::uint32_t workers(const model::Pool& pool) { return std::max(pool.workers_before, pool.workers_lost); }

std::string pool_name(const model::Pool& pool) {
  const char* const runtime = pool.kind == model::RuntimeKind::kLibgomp ? "libgomp" : "libomp";
  if (workers(pool) == 0) return fmt::format("{} team", runtime);
  return fmt::format("{} pool of {}", runtime, words::count(workers(pool) + 1ULL, "thread", "threads"));
}

std::string_view option(model::CureMethod method) {
  switch (method) {
    case model::CureMethod::kClamp: return "--omp=clamp";
    case model::CureMethod::kQuiesce: return "--omp=quiesce";
    case model::CureMethod::kRebuild: break;
  }
  return "--omp=rebuild";
}

std::string_view method_name(model::CureMethod method) {
  return option(method).substr(std::string_view("--omp=").size());
}

Culprit describe_pool(const Evidence& evidence, const model::Pool& pool) {
  Culprit culprit;
  culprit.kind = CulpritKind::kPool;
  culprit.name = pool_name(pool);
  culprit.library = pool.library;
  culprit.stack = pool.made_at;
  if (!pool.workers.empty()) culprit.holder = evidence.holder(evidence.model().threads[pool.workers.front()]);
  return culprit;
}

void add_general_fixes(Finding& finding, const model::Process& process) {
  if (words::is_python(process)) {
    finding.fixes.push_back(
        {"In Python, start workers with multiprocessing.set_start_method(\"forkserver\") or \"spawn\": they exec, and "
         "begin without the parent's threads."});
  } else {
    finding.fixes.push_back(
        {"Start the child with posix_spawn(), or exec right after fork(): a new program begins without a lost pool."});
  }
  finding.fixes.push_back(
      {"Fork before the first parallel region of the forking thread, or run that "
       "region in a thread that does not fork."});
}

void add_other_runtime(Finding& finding) {
  finding.fixes.push_back(
      {"Run on LLVM's OpenMP runtime (clang -fopenmp, or LD_PRELOAD=libomp.so for code built by gcc): it makes its "
       "pool anew in the child."});
}

}  // namespace forksight::openmp
