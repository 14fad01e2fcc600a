// The hooks of functions that wait for children. They record which children ended by a crash. An ended child cannot
// record this itself, and `forksight run` does not learn how the child ended, because the kernel gives the status of a
// child only to its parent. Nothing is recorded if there is no trace yet.
#include <sys/resource.h>
#include <sys/wait.h>

#include "forksight/trace/ends.hpp"
#include "guest/site.hpp"
#include "loader/lazy_next.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

using namespace forksight;

namespace {

bool is_crash(int number) {
  switch (number) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT: return true;
    default: return false;
  }
}

void note_end(pid_t child, int status) {
  if (child <= 0 || !WIFSIGNALED(status) || !is_crash(WTERMSIG(status)) || !trace_is_open()) return;
  append(trace::RecordType::kChildEnd, trace::ChildEndRecord{child, status}, Importance::kFinding);
}

// Calls `wait`, the real function, always with a pointer to a status, even if the caller passed none.
template <class Wait>
__attribute__((always_inline)) inline pid_t wait_for(int* status, Wait wait) {
  int own = 0;
  int* const to = status != nullptr ? status : &own;
  const pid_t child = wait(to);
  if (child > 0) note_end(child, *to);
  return child;
}

}  // namespace

FORKSIGHT_EXPORT(pid_t, wait, int* status) {
  return wait_for(status, [](int* to) { return FORKSIGHT_LAZY_NEXT(wait)(to); });
}

FORKSIGHT_EXPORT(pid_t, waitpid, pid_t pid, int* status, int options) {
  return wait_for(status, [=](int* to) { return FORKSIGHT_LAZY_NEXT(waitpid)(pid, to, options); });
}

FORKSIGHT_EXPORT(pid_t, wait3, int* status, int options, struct rusage* usage) {
  return wait_for(status, [=](int* to) { return FORKSIGHT_LAZY_NEXT(wait3)(to, options, usage); });
}

FORKSIGHT_EXPORT(pid_t, wait4, pid_t pid, int* status, int options, struct rusage* usage) {
  return wait_for(status, [=](int* to) { return FORKSIGHT_LAZY_NEXT(wait4)(pid, to, options, usage); });
}

FORKSIGHT_EXPORT(int, waitid, idtype_t type, id_t id, siginfo_t* info, int options) {
  const int result = FORKSIGHT_LAZY_NEXT(waitid)(type, id, info, options);
  if (result == 0 && info != nullptr && (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED)) {
    note_end(info->si_pid, info->si_status);
  }
  return result;
}
