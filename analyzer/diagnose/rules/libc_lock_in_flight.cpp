// At the fork a thread was in a libc function that takes a lock of libc: localtime, setenv, getpwnam and a hundred
// more. In the child, fork() resets the locks of malloc and stdio, but not these locks. The shim cannot see whether the
// thread held the lock at that instant. If the child hangs in a function that takes the same lock, this proves that the
// thread held the lock.
#include "diagnose/libc_calls.hpp"
#include "diagnose/rules.hpp"

namespace forksight::rules {

void libc_lock_in_flight(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto lost = libc_calls::find_lost(evidence.model(), touch);
    if (!lost || lost->lock == trace::LibcLock::kLoader) continue;
    // The rule fork-in-signal-handler reports this touch.
    if (libc_calls::is_in_handler(evidence.model(), touch, *lost)) continue;
    const auto end = libc_calls::find_end(evidence, touch);
    if (!end) continue;
    Finding finding = libc_calls::describe(evidence, "libc-lock-in-flight", touch, *lost, *end);
    libc_calls::add_fixes(evidence.fork(touch), touch, *lost, finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
