// The hooks of functions by which a program gives up rights. The trace file is created before such a call, because
// afterwards the folder of the file may be out of reach, or a filter may forbid the calls that create a file. If a
// program installs a seccomp filter, the shim reads the filter to find out which system calls the shim may still make.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guest/clock.hpp"
#include "guest/confinement.hpp"
#include "guest/kept_errno.hpp"
#include "guest/seccomp_filter.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "guest/vfork_mark.hpp"
#include "loader/lazy_next.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"
#include "record/slots.hpp"
#include "record/trace_file.hpp"
#include "rights/rights.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

// False in a child of vfork(): the child gives up only its own rights, but runs in its parent's memory.
bool is_own_process() { return !is_vfork_child(); }

// Creates the trace file while that is possible, with room for later records.
__attribute__((noinline)) void keep_trace() {
  const KeptErrno kept;
  initialise();
  if (!is_own_process() || own_slot() == nullptr || !open_trace()) return;
  refresh_modules();
  reserve_trace_room();
}

}  // namespace

Filter read_new_filter(unsigned long mode, const void* program) {
  const KeptErrno kept;
  keep_trace();
  Filter filter{is_own_process(), mode == SECCOMP_MODE_STRICT, {}};
  if (!filter.confines) return filter;
  note_pid();
  const bool is_known = mode == SECCOMP_MODE_FILTER && read_filter(program, filter.refused);
  if (!is_known) filter.refused = refused_in_strict_mode();
  return filter;
}

void filter_was_installed(const Filter& filter) {
  if (!filter.confines) return;
  confine(filter.refused);
  if (filter.is_strict) g_may_read_clock = false;
}

void counter_is_about_to_change(unsigned long mode) {
  if (mode != PR_TSC_ENABLE && is_own_process()) g_may_read_clock = false;
}

}  // namespace forksight

using namespace forksight;

FORKSIGHT_EXPORT(int, setuid, uid_t user) {
  keep_trace();
  return FORKSIGHT_LAZY_NEXT(setuid)(user);
}

FORKSIGHT_EXPORT(int, seteuid, uid_t user) {
  keep_trace();
  return FORKSIGHT_LAZY_NEXT(seteuid)(user);
}

FORKSIGHT_EXPORT(int, setreuid, uid_t real, uid_t effective) {
  keep_trace();
  return FORKSIGHT_LAZY_NEXT(setreuid)(real, effective);
}

FORKSIGHT_EXPORT(int, setresuid, uid_t real, uid_t effective, uid_t saved) {
  keep_trace();
  return FORKSIGHT_LAZY_NEXT(setresuid)(real, effective, saved);
}

FORKSIGHT_EXPORT(int, chroot, const char* path) {
  keep_trace();
  return FORKSIGHT_LAZY_NEXT(chroot)(path);
}

// libc declares prctl() with an ellipsis. All arguments that a caller may have given are passed on.
FORKSIGHT_EXPORT(int, prctl, int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  if (option == PR_SET_TSC) counter_is_about_to_change(a);
  if (FORKSIGHT_LIKELY(option != PR_SET_SECCOMP)) return FORKSIGHT_LAZY_NEXT(prctl)(option, a, b, c, d);
  const Filter filter = read_new_filter(a, reinterpret_cast<const void*>(b));
  const int result = FORKSIGHT_LAZY_NEXT(prctl)(option, a, b, c, d);
  if (result == 0) filter_was_installed(filter);
  return result;
}
