// The configuration from the environment, read once by the initialiser.
#pragma once

#include "forksight/trace/cures.hpp"
#include "forksight/trace/format.hpp"

namespace forksight {

struct Config {
  trace::OmpPolicy omp = trace::OmpPolicy::kObserve;
  trace::OrphanPolicy on_orphan = trace::OrphanPolicy::kReport;
  trace::CureSet cures;  // consistent with `omp` and `on_orphan`
  char out[1024] = {};   // absolute path of the trace folder; "" for none
  std::int32_t rank = -1;
  std::int32_t world_size = -1;
  char rank_variable[32] = {};
  std::int32_t python_signal = 0;  // 0: none
  bool lock_order = false;
  bool predict = false;
  bool under_valgrind = false;
};

extern Config g_config;

inline bool cures(trace::Cure cure) { return g_config.cures.has(cure); }

// `environment`: a list like `environ`, which libc may not have set up yet.
void read_config(char** environment);

}  // namespace forksight
