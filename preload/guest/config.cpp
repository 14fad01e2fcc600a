#include "guest/config.hpp"

#include <string.h>

#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

constinit Config g_config;

namespace {

const char* find_variable(char** environment, const char* name) {
  const std::size_t length = strlen(name);
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

// Returns the number that the text consists of. -1: the text is null or empty, has a character that is not a digit, or
// the number is too large.
std::int32_t decode_count(const char* text) {
  std::int64_t value = 0;
  if (text == nullptr || *text == '\0') return -1;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return -1;
    value = value * 10 + (*text - '0');
    if (value > INT32_MAX) return -1;
  }
  return static_cast<std::int32_t>(value);
}

// The real-time signals that glibc does not use itself.
constexpr std::int32_t kFirstRealTime = 34;
constexpr std::int32_t kLastRealTime = 64;

// True if `text`, the value of LD_PRELOAD, names a library of Valgrind. Valgrind adds its libraries to LD_PRELOAD.
bool names_valgrind(const char* text) {
  constexpr char kName[] = "vgpreload_";
  for (; text != nullptr && *text != '\0'; ++text) {
    if (strncmp(text, kName, sizeof kName - 1) == 0) return true;
  }
  return false;
}

// Sets `out` to the value with this name. Leaves `out` unchanged, without an error message, if the table does not have
// the name. The command reports such names when it checks its options.
template <class T, std::size_t N>
void choose(const char* text, const char* const (&names)[N], T& out) {
  for (std::size_t i = 0; text != nullptr && i < N; ++i) {
    if (strcmp(text, names[i]) == 0) out = static_cast<T>(i);
  }
}

void read_folder(const char* folder) {
  if (folder == nullptr || *folder == '\0') return;
  std::size_t used = 0;
  if (*folder != '/') {
    // The kernel's getcwd returns the length with the NUL.
    const long length = sys::call(SYS_getcwd, sys::word(g_config.out), sizeof g_config.out);
    if (length <= 1 || g_config.out[0] != '/') {
      g_config.out[0] = '\0';
      return;
    }
    used = static_cast<std::size_t>(length) - 1;
    g_config.out[used++] = '/';
  }
  const std::size_t length = strlen(folder);
  if (used + length + 1 > sizeof g_config.out) {
    g_config.out[0] = '\0';
    return;
  }
  memcpy(g_config.out + used, folder, length + 1);
}

// The variables of launchers, in the order in which they are read (torchrun, Open MPI, Slurm, PMI).
struct Launcher {
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
    {"PMI_RANK", "PMI_SIZE"},
};

void read_rank(char** environment) {
  for (const Launcher& launcher : kLaunchers) {
    const std::int32_t rank = decode_count(find_variable(environment, launcher.rank));
    if (rank < 0) continue;
    g_config.rank = rank;
    g_config.world_size = decode_count(find_variable(environment, launcher.size));
    memcpy(g_config.rank_variable, launcher.rank, strlen(launcher.rank) + 1);
    return;
  }
}

}  // namespace

void read_config(char** environment) {
  constexpr const char* kOmp[] = {"observe", "clamp", "quiesce", "rebuild", "auto"};
  constexpr const char* kOrphan[] = {"report", "abort", "recover"};
  // An invalid name and everything after it are ignored.
  trace::read_cures(find_variable(environment, "FORKSIGHT_CURE"), g_config.cures);
  if (cures(trace::Cure::kOmp)) g_config.omp = trace::OmpPolicy::kAuto;
  if (cures(trace::Cure::kOrphans)) g_config.on_orphan = trace::OrphanPolicy::kRecover;
  // FORKSIGHT_OMP and FORKSIGHT_ON_ORPHAN take precedence over the list in FORKSIGHT_CURE.
  choose(find_variable(environment, "FORKSIGHT_OMP"), kOmp, g_config.omp);
  choose(find_variable(environment, "FORKSIGHT_ON_ORPHAN"), kOrphan, g_config.on_orphan);
  g_config.cures.put(trace::Cure::kOmp, g_config.omp != trace::OmpPolicy::kObserve);
  g_config.cures.put(trace::Cure::kOrphans, g_config.on_orphan == trace::OrphanPolicy::kRecover);
  const std::int32_t number = decode_count(find_variable(environment, "FORKSIGHT_PYTHON_SIGNAL"));
  if (number >= kFirstRealTime && number <= kLastRealTime) g_config.python_signal = number;
  g_config.lock_order = decode_count(find_variable(environment, "FORKSIGHT_LOCK_ORDER")) > 0;
  g_config.predict = decode_count(find_variable(environment, "FORKSIGHT_PREDICT")) > 0;
  g_config.under_valgrind = names_valgrind(find_variable(environment, "LD_PRELOAD"));
  read_folder(find_variable(environment, "FORKSIGHT_OUT"));
  read_rank(environment);
}

}  // namespace forksight
