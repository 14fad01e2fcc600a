#include "signals/blocked.hpp"

#include <signal.h>

#include "guest/sys.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

void at_fork::BlockedSignals::records(const Fork& fork) {
  if (fork.record == 0) return;
  std::uint64_t blocked = 0;
  const long failed = sys::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, sys::word(&blocked), sizeof blocked);
  if (failed != 0 || blocked == 0) return;
  append(trace::RecordType::kBlockedSignals, trace::BlockedSignalsRecord{fork.record, blocked});
}

}  // namespace forksight
