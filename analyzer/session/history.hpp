// Keeps what the supervisor has seen so far, also about processes that have ended. run.json contains these facts.
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

  // Notes everything that is stuck now. `stuck` may also contain processes that are ending: the supervisor has no
  // verdict on such a process any more. Returns the processes that were stuck before and now go on.
  std::vector<proc::ProcessKey> note(const watch::Supervisor& supervisor,
                                     const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                                     watch::Clock::time_point now);
  // Notes what the threads wait for. `seen` is the result of an examination of the processes. The waits in `seen` also
  // have stacks and the names of the awaited objects.
  void note_look(const model::Model& seen);
  // Notes that CMD ended, with this status of wait(2). `is_by_itself`: CMD exited, and neither forksight nor a signal
  // told it to end. Returns true if CMD seemed to be stuck, but ended by itself. The caller must then withdraw the hang
  // of CMD.
  bool note_end(const proc::ProcessKey& key, int status, bool is_by_itself);
  // Notes that forksight has sent SIGKILL to this process.
  void note_kill(const proc::ProcessKey& key);
  // Adds a row for CMD, because CMD may end before the first look.
  void note_command(const watch::Member& member);
  // From now on, also notes when a process of `model` ends, if the process shares CUDA device memory by handle.
  void follow_ends(const model::Model& model) { ended_.follow(model); }
  void add_limit(const std::string& sentence);

  bool has_stuck() const;
  collect::RunLog log(const watch::Supervisor& supervisor) const;

 private:
  void add_look(const proc::ProcessKey& key, collect::LoggedProcess& row) const;
  std::vector<proc::ProcessKey> withdraw(const watch::Supervisor& supervisor,
                                         const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                                         watch::Clock::time_point now);

  collect::RunLog base_;
  std::map<proc::ProcessKey, collect::LoggedProcess> kept_;
  struct Look {
    std::vector<model::Wait> waits;
    bool never_had_other_threads = false;
  };
  std::map<proc::ProcessKey, Look> looks_;
  std::map<proc::ProcessKey, watch::Clock::time_point> missed_;  // when the process was first seen not to be stuck
  RunEnded ended_;
};

}  // namespace forksight
