#include "watch/unheard_signals.hpp"

#include <algorithm>
#include <utility>

#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "watch/proof.hpp"

namespace forksight::watch {

std::uint64_t find_unheard(const proc::Round& round, std::uint64_t lost) {
  bool lives = false;
  for (const proc::ThreadSample& thread : round.threads) {
    if (thread.ended()) continue;
    lives = true;
    lost &= thread.status.shared_pending & thread.status.blocked;
  }
  return lives ? lost : 0;
}

std::vector<Unheard> UnheardSignals::look(const Tree& tree, std::chrono::steady_clock::time_point now,
                                          proc::DescriptorTables& tables) {
  std::vector<Unheard> found;
  const std::map<proc::ProcessKey, Seen> before = std::exchange(seen_, {});
  for (const auto& [pid, lost] : lost_) {
    const auto member = tree.living().find(pid);
    if (member == tree.living().end()) continue;
    const auto stat = proc::read_stat(pid);
    const bool is_copy =
        stat && stat->start_ticks == member->second.key.start_ticks && (stat->flags & proc::kForkedWithoutExec) != 0;
    if (!is_copy) continue;
    bool refused = false;
    auto round = proc::sample_round(pid, refused);
    if (!round) continue;
    const proc::ProcessKey& key = member->second.key;
    std::uint64_t signals = find_unheard(*round, lost);
    Seen seen{signals, now, *round};
    // A signal that was pending at the previous look and is pending now counts as pending all the time between the
    // looks. If no signal was pending at both looks, the time starts again.
    const auto known = before.find(key);
    if (known != before.end() && (known->second.signals & signals) != 0) {
      signals &= known->second.signals;
      const bool at_rest = known->second.at_rest && is_same_round(known->second.first, *round);
      seen = {signals, known->second.since, known->second.first, at_rest};
    }
    if (signals == 0) continue;
    // A process with a signalfd takes signals when it reads the descriptor. forksight does not know how soon this
    // happens, and does not examine for which signals the signalfd was made.
    if (!tables.may_have_signalfd(pid)) found.push_back({key, signals, seen.since, seen.at_rest, std::move(*round)});
    seen_.emplace(key, std::move(seen));
  }
  return found;
}

}  // namespace forksight::watch
