#include "guest/confinement.hpp"

#include <errno.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>

#include "guest/busy_flag.hpp"
#include "guest/proc_lines.hpp"
#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

extern "C" {
constinit std::uint8_t forksight_refuses_getpid = 0;
}

namespace forksight {

constinit Confinement g_confinement = Confinement::kUnasked;
constinit ReadTid g_read_tid = nullptr;
// In .data, with the other variables that each fork writes (FORKSIGHT_WRITTEN_AT_FORK).
__attribute__((section(".data"))) constinit std::uint32_t g_fork_depth = 0;

namespace {

constexpr std::int16_t kLoaderCalls[] = {
#define FORKSIGHT_CALL(number)
#define FORKSIGHT_LOADER_CALL(number) number,
#include "guest/shim_calls.def"
};

constexpr std::int16_t kTried[] = {
#define FORKSIGHT_CALL(number) number,
#define FORKSIGHT_LOADER_CALL(number)
#include "guest/shim_calls.def"
};
constexpr std::uint32_t kTriedCount = sizeof kTried / sizeof *kTried;
// After a filter has killed a child, at most this many further children are made. The calls that no child has tried by
// then count as refused.
constexpr std::uint32_t kMostDeaths = 16;

constinit CallSet g_refused = {};
constinit std::int32_t g_pid = 0;
constinit BusyFlag g_trying;

bool is_loader_call(long number) {
  for (const std::int16_t one : kLoaderCalls) {
    if (number == one) return true;
  }
  return false;
}

void settle(Confinement confinement) {
  forksight_refuses_getpid = confinement != Confinement::kNone && g_refused.has(SYS_getpid) ? 1 : 0;
  g_confinement = confinement;
}

// A filter may kill the child that tries calls. These are the ways in which the child prevents that the kernel writes a
// core of the child. Each way needs a system call. If the filter kills a child for this system call, the next child
// uses the next way.
enum CorePrevention : std::uint32_t {
  kByLimit,  // a limit of 1 byte: the kernel neither writes a core file nor starts a program that handles cores
  kByFlag,   // PR_SET_DUMPABLE 0: the kernel does not write a core of the child
  kNotPrevented,
};

// The results of a child that tries calls, in memory that it shares with the shim.
struct TriedCalls {
  std::atomic<std::uint32_t> prevention;    // the way that the child uses
  std::atomic<std::uint32_t> is_prevented;  // 1: the child has survived the system call of that way
  std::atomic<std::uint32_t> begun;         // how many calls were begun
  std::atomic<std::uint32_t> ended;         // how many calls have a known result
};

void prevent_core(std::uint32_t prevention) {
  const rlimit no_core{1, 1};
  if (prevention == kByLimit) sys::raw_call(SYS_prlimit64, 0, RLIMIT_CORE, sys::word(&no_core), 0);
  if (prevention == kByFlag) sys::raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
}

// Makes the call with arguments for which it does nothing: no descriptor, address or process has the number -1.
void try_call(long number) {
  // The shim only reads limits. A filter may kill a process that sets a limit, and permit reading one.
  if (number == SYS_prlimit64) {
    sys::raw_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, 0);
    return;
  }
  sys::raw_call(number, -1, -1, -1, -1, -1, -1);
}

// Makes the calls one after the other, and ends the child. Skips each call for which the filter has killed an earlier
// child.
void try_calls(TriedCalls& tried) {
  prevent_core(tried.prevention.load());
  tried.is_prevented.store(1);
  for (std::uint32_t at = tried.begun.load(); at < kTriedCount; ++at) {
    tried.begun.store(at + 1);
    if (!g_refused.has(kTried[at])) try_call(kTried[at]);
    tried.ended.store(at + 1);
  }
  for (;;) sys::raw_call(SYS_exit_group, 0);
}

// Makes a child with a copy of the memory. Returns 0 in the child. The caller continues when the child has ended. The
// program does not notice the child: its end sends no signal, and wait() without __WALL or __WCLONE does not return it.
long make_child(TryBy by) {
  if (by == TryBy::kClone) return sys::raw_call(SYS_clone, CLONE_VFORK);
  clone_args arguments{};
  arguments.flags = CLONE_VFORK;
  return sys::raw_call(SYS_clone3, sys::word(&arguments), sizeof arguments);
}

// Blocks all signals, so that no handler of the program runs in the child. A filter permits this call, because glibc
// makes it for each new thread and at each fork.
class BlockedSignals {
 public:
  BlockedSignals() {
    const std::uint64_t all = ~std::uint64_t{0};
    sys::raw_call(SYS_rt_sigprocmask, SIG_SETMASK, sys::word(&all), sys::word(&before_), sizeof before_);
  }
  ~BlockedSignals() { sys::raw_call(SYS_rt_sigprocmask, SIG_SETMASK, sys::word(&before_), 0, sizeof before_); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  std::uint64_t before_ = 0;
};

// wait4() is the first call that is tried. If the filter kills for it, the children stay zombies.
static_assert(kTried[0] == SYS_wait4);
bool may_wait(const TriedCalls& tried) { return tried.ended.load() >= 1 && !g_refused.has(SYS_wait4); }

void wait_for(long child) { sys::raw_call(SYS_wait4, child, 0, __WALL, 0); }

// Tries all calls in children, and adds to g_refused each call for which the filter kills. Returns false if no child
// could be made.
bool try_all(TryBy by, TriedCalls& tried) {
  long unreaped[kNotPrevented] = {};  // children that ended before wait4() was known to be permitted
  std::uint32_t unreaped_count = 0;
  bool is_made = true;
  for (std::uint32_t deaths = 0; deaths <= kMostDeaths; ++deaths) {
    tried.is_prevented.store(0);
    const long child = make_child(by);
    if (child == 0) try_calls(tried);
    is_made = child >= 0;
    if (!is_made) break;
    if (may_wait(tried)) wait_for(child);
    if (tried.is_prevented.load() == 0) {
      const std::uint32_t prevention = tried.prevention.load();
      if (prevention >= kNotPrevented) break;  // something other than the filter has killed the child
      if (!may_wait(tried)) unreaped[unreaped_count++] = child;
      tried.prevention.store(prevention + 1);
      continue;
    }
    const std::uint32_t begun = tried.begun.load();
    if (begun == tried.ended.load()) break;
    g_refused.add(kTried[begun - 1]);
    tried.ended.store(begun);
  }
  for (std::uint32_t at = 0; may_wait(tried) && at < unreaped_count; ++at) wait_for(unreaped[at]);
  if (!is_made) return false;
  for (std::uint32_t at = tried.ended.load(); at < kTriedCount; ++at) g_refused.add(kTried[at]);
  return true;
}

}  // namespace

bool is_permitted_slow(long number) {
  if (is_loader_call(number) && g_confinement != Confinement::kKnown) return !g_refused.has(number);
  if (g_confinement == Confinement::kUnasked) look_for_filter();
  return g_confinement == Confinement::kNone || (g_confinement == Confinement::kKnown && !g_refused.has(number));
}

void look_for_filter() {
  if (g_confinement != Confinement::kUnasked) return;
  Confinement found = Confinement::kNone;
  std::int32_t pid = 0;
  for_each_line("/proc/self/status", [&](const char* line) {
    const char* text = after(line, "Pid:\t");
    if (text != nullptr) pid = static_cast<std::int32_t>(read_number(text));
    text = after(line, "Seccomp:\t");
    if (text != nullptr && read_number(text) != 0) found = Confinement::kUntried;
    return text == nullptr;
  });
  g_pid = pid;
  forksight_refuses_getpid = found == Confinement::kNone ? 0 : 1;
  g_confinement = found;
}

void try_filter_slow(TryBy by) {
  if (!g_trying.take()) return;
  constexpr std::size_t kBytes = 4096;
  void* const memory = sys::map(kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
  if (memory != nullptr) {
    const BlockedSignals blocked;
    // If a child could not be made, the results are dropped. The next fork, or the next new thread, tries again.
    const CallSet before = g_refused;
    if (try_all(by, *static_cast<TriedCalls*>(memory))) {
      settle(Confinement::kKnown);
    } else {
      g_refused = before;
    }
  }
  if (memory != nullptr) sys::unmap(memory, kBytes);
  g_trying.give_back();
}

void confine(const CallSet& refused) {
  if (g_confinement == Confinement::kNone) g_refused = {};
  for (std::uint32_t i = 0; i < kCallWords; ++i) g_refused.words[i] |= refused.words[i];
  settle(g_confinement == Confinement::kUntried ? Confinement::kUntried : Confinement::kKnown);
}

std::uint32_t count_refused() {
  std::uint32_t count = 0;
  if (g_confinement == Confinement::kNone) return 0;
  for (const std::int16_t number : kTried) count += is_permitted_slow(number) ? 0U : 1U;
  return count;
}

void note_pid() { g_pid = sys::getpid(); }

void note_child_pid() {
  ++g_fork_depth;
  if (g_confinement != Confinement::kNone && g_read_tid != nullptr) g_pid = g_read_tid();
}

std::int32_t pid_when_confined() { return g_pid; }

}  // namespace forksight
