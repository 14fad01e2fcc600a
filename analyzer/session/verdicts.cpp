#include "session/verdicts.hpp"

#include <algorithm>

namespace forksight {

const watch::Verdict* find_verdict(const Verdicts& verdicts, const model::Process& process) {
  const auto at = std::ranges::find_if(verdicts, [&](const auto& entry) {
    const bool is_same_start = process.start_ticks == 0 || process.start_ticks == entry.first.start_ticks;
    return entry.first.pid == process.pid && is_same_start;
  });
  return at == verdicts.end() ? nullptr : &at->second;
}

}  // namespace forksight
