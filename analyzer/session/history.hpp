// What the supervisor saw so far, kept past the end of the processes: the contents of run.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/run_log.hpp"
#include "proc/proc_fs.hpp"
#include "session/ended.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

class RunHistory {
 public:
  explicit RunHistory(std::vector<std::string> command);

  // Takes over everything that is stuck now. `stuck` may hold more than the supervisor's own verdicts. Returns those
  // that were stuck and go on.
  std::vector<proc::ProcessKey> note(const watch::Supervisor& supervisor,
                                     const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                                     watch::Clock::time_point now);
  // What the threads wait for, as the inspector saw it: with stacks, and the names of what they wait for.
  void note_look(const model::Model& seen);
  // CMD ended, with this status as of wait(2). True: it was stuck, as it seemed, and ended by itself.
  bool note_end(const proc::ProcessKey& key, int status, bool is_by_itself);
  // The run has sent it SIGKILL.
  void note_kill(const proc::ProcessKey& key);
  // CMD's own row: it may end before the first look.
  void note_command(const watch::Member& member);
  // When the processes end of which the traces say that it matters.
  void follow_ends(const model::Model& model) { ended_.follow(model); }
  void add_limit(const std::string& sentence);

  bool has_stuck() const;
  collect::RunLog log(const watch::Supervisor& supervisor) const;

 private:
  void add_look(const proc::ProcessKey& key, collect::LoggedProcess& row) const;
  std::vector<proc::ProcessKey> take_back(const watch::Supervisor& supervisor,
                                          const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                                          watch::Clock::time_point now);

  collect::RunLog base_;
  std::map<proc::ProcessKey, collect::LoggedProcess> kept_;
  struct Look {
    std::vector<model::Wait> waits;
    bool is_lone = false;
  };
  std::map<proc::ProcessKey, Look> looks_;
  std::map<proc::ProcessKey, watch::Clock::time_point> missed_;  // since when a proof is missing that there was
  RunEnded ended_;
};

}  // namespace forksight
