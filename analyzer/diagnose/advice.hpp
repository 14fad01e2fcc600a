// Gives advice in the words of the framework or language of the hanging process. All rules use one table of advice.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "diagnose/finding.hpp"

namespace forksight {

// Puts up to two fixes in front of the others. The first says which processes to end now, and what then happens to
// other processes and to the work. It is added if these processes still exist, and their hang is certain or likely. The
// second says how to avoid the hang, in the words of the first context in the table that a stack shows. It is added for
// two kinds of findings: a forked child hangs on state that its fork broke, or a child writes to a full pipe while its
// parent waits for the child to end.
//
// There may be thousands of findings and of processes, so an Advisor looks at each process only once.
class Advisor {
 public:
  // The model must outlive the Advisor.
  explicit Advisor(const model::Model& model);

  void add_advice(Finding& finding) const;

 private:
  const model::Process* find_starter(const Finding& finding, bool is_started_by_parent) const;
  std::string describe_processes_that_continue(const Finding& finding) const;

  const model::Model& model_;
  std::unordered_map<std::int32_t, const model::Process*> by_pid_;                 // the first process with this pid
  std::unordered_map<model::ProcessId, const model::Process*> waiter_for_end_of_;  // the first one that still exists
};

}  // namespace forksight
