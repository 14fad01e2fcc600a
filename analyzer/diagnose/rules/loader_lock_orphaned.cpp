// While a callback of dl_iterate_phdr runs, its thread holds the loader's lock on the list of loaded objects. fork()
// resets the loader's other locks in the child, but not this one. If another thread was in such a callback at the fork,
// the lock stays taken in the child. Then each function of the child that walks or changes the list waits for ever.
#include "diagnose/libc_calls.hpp"
#include "diagnose/rules.hpp"

namespace forksight::rules {

void loader_lock_orphaned(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto lost = libc_calls::find_lost(evidence.model(), touch);
    if (!lost || lost->lock != trace::LibcLock::kLoader) continue;
    // The rule fork-in-signal-handler reports this touch.
    if (libc_calls::is_in_handler(evidence.model(), touch, *lost)) continue;
    const auto end = libc_calls::find_end(evidence, touch);
    if (!end) continue;
    Finding finding = libc_calls::describe(evidence, "loader-lock-orphaned", touch, *lost, *end);
    add_sentence(finding, "Callbacks of dl_iterate_phdr run under this lock; dlopen and dlclose take it, too.");
    libc_calls::add_fixes(evidence.fork(touch), touch, *lost, finding);
    finding.fixes.push_back(
        {"Keep callbacks of dl_iterate_phdr short: copy what they are given, and do the work after it has returned."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
