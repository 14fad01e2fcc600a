// Rings of threads that wait for each other, out of what was seen from outside: each waits for something that only the
// next can give, and the last waits for the first. Locks by their owners, joins, pipes, sockets, file locks, children.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::cycles {

struct Link {
  model::ProcessId process = 0;
  const model::Wait* wait = nullptr;
  const model::Waker* waker = nullptr;  // one of the wait's: leads to the next link
};
using Cycle = std::vector<Link>;

// All rings of threads that are proved stuck, each thread in one at most, the shortest through each. Waits whose object
// is not understood lead nowhere. A ring of one waits for itself.
std::vector<Cycle> find_cycles(const model::Model& model);

bool has_via(const Cycle& cycle, std::string_view via);
// All links are by one of these.
bool is_made_of(const Cycle& cycle, const std::set<std::string_view>& vias);
// A hazard of a fork is the cause, and told by its own rule: one of the threads is in the middle of an atfork handler,
// or of a call on something that its fork broke; or one of `findings` has explained one of the processes by its fork. Or
// what they wait for is a task that was lost with its worker.
bool is_told_elsewhere(const Evidence& evidence, const Cycle& cycle, const std::vector<Finding>& findings);

// The finding of a ring as far as all kinds share it: process, thread, certainty, processes.
Finding begin_finding(const char* slug, const Evidence& evidence, const Cycle& cycle);
// Only threads are stuck, their process is not.
bool goes_on(const Evidence& evidence, const Link& link);
// "process 12 (app) hangs", or "a thread of process 12 (app) hangs".
std::string hanging(const Evidence& evidence, const Cycle& cycle);
// One sentence a link: "Thread 12 "a" of process 5 waits for mutex_b, which thread 13 "b" holds."
void tell(const Evidence& evidence, const Cycle& cycle, Finding& finding);
// How certain it is that nothing ever ends it: a signal handler might.
void set_certainty(const Evidence& evidence, const Cycle& cycle, Finding& finding);

// How a thread of a ring lets go of Python's GIL.
void advise_on_gil(Finding& finding);

// The lock that the first link waits for, or that a wait is for, with its holder.
Culprit culprit_lock(const Evidence& evidence, const Cycle& cycle);
Culprit culprit_lock(const model::Wait& wait);
// Who has what the link at `index` waits for: the thread of the next link.
Holder holder(const Evidence& evidence, const Cycle& cycle, std::size_t index);

// A ring of readers of which one waits for the end of a pipe or connection that another one has open: itself, or on the
// way back somebody waits for a child's end.
bool is_held_open(const Cycle& cycle);
bool is_reader(const model::Wait& wait);

// "queue_mutex", "the mutex at 0x55d0c0", "/run/a.lock", "pipe:[17]"
std::string object(const model::Wait& wait);
// "thread 12 "a"", with "of process 5" where several processes are in it.
std::string thread(const Evidence& evidence, const Link& link, bool names_process);
bool is_of_one_process(const Cycle& cycle);

}  // namespace forksight::cycles
