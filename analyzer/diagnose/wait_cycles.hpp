// Finds rings of threads that wait for each other, as seen from outside. Each thread waits for something that only the
// next thread can give. The last thread waits for the first one. A thread may wait for the owner of a lock or file
// lock, for the other end of a pipe or socket, or for the end of a thread or child.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/cycle.hpp"
#include "diagnose/evidence.hpp"

namespace forksight::cycles {

// Finds rings of threads that are proven stuck. Each thread is in at most one ring: if the shortest ring through a
// thread contains a thread of an earlier ring, the new ring is left out. A wait counts only if it is known which thread
// or process could end it. In a ring of one link, a thread waits for itself. The rings contain pointers into the model.
//   Somebody may make a graph in which each search for a ring visits all nodes, and finds only rings that are not new.
//   So the function stops to search after `most_steps` steps, and returns the rings that it has found until then. It
//   searches twice, the first time without the wakers of kind kViaSemaphoreLock. Each time has its own `most_steps`.
inline constexpr std::size_t kMostSearchSteps = 100'000'000;
// The search also ends when the time of `clock` is used up.
Cycles find_cycles(const model::Model& model, std::size_t most_steps = kMostSearchSteps,
                   const RuleClock* clock = nullptr);

bool has_via(const Cycle& cycle, std::string_view via);
// True if each link has a waker of one of these kinds.
bool is_made_of(const Cycle& cycle, const std::set<std::string_view>& vias);
// Says which rings another rule explains. There may be thousands of rings and of findings, so this class keeps an
// index.
class OtherFindings {
 public:
  explicit OtherFindings(const Evidence& evidence);

  // True if another rule reports the cause of the ring. `findings` may have grown since the last call. There are five
  // such causes:
  // - A process of the ring is in an atfork handler.
  // - A thread of the ring is in a call on something that a fork broke.
  // - One of `findings` explains the hang of a process of the ring by a fork.
  // - A process of the ring waits for a task that was lost with its worker (rule lost-task).
  // - A process of the ring waits for a task, and the lock of the queue of tasks was lost (rule queue-lock-abandoned).
  bool explain(const Cycle& cycle, const std::vector<Finding>& findings);

 private:
  const Evidence& evidence_;
  std::set<model::ProcessId> processes_;
  std::set<std::pair<model::ProcessId, std::int32_t>> threads_;
  std::size_t known_ = 0;  // the findings that `processes_` contains
};

// Begins the finding about a ring. Fills in what all rules share: process, thread, certainty and processes.
Finding begin_finding(const char* slug, const Evidence& evidence, const Cycle& cycle);
// True if the process of the link goes on, so that only some of its threads are stuck.
bool process_goes_on(const Evidence& evidence, const Link& link);
// Returns "process 12 hangs", or "a thread of process 12 hangs" if other threads of the process go on.
std::string hanging(const Evidence& evidence, const Cycle& cycle);
// Adds a sentence for each link, such as "Thread 12 "a" of process 5 waits for mutex_b, which thread 13 "b" holds."
void tell(const Evidence& evidence, const Cycle& cycle, Finding& finding);
// Sets the outcome, and how certain it is that nothing ever ends the waits of the ring. It is not certain if, for
// example, a signal handler may end a wait.
void set_certainty(const Evidence& evidence, const Cycle& cycle, Finding& finding);

// Adds the advice to release Python's GIL before a wait.
void advise_on_gil(Finding& finding);

// The first function returns the object that a finding about the ring blames, with the object's holder. It chooses the
// first object of the ring that is neither Python's GIL nor a thread or process whose end is awaited. If there is no
// such object, it chooses the GIL. If the GIL is not in the ring either, it chooses the object of the last link.
// The second function returns the lock that a thread waits for in `wait`, without a holder.
Culprit culprit_lock(const Evidence& evidence, const Cycle& cycle);
Culprit culprit_lock(const model::Wait& wait);
// Returns the thread of the link after `index`. This thread holds what the link at `index` waits for.
Holder holder(const Evidence& evidence, const Cycle& cycle, std::size_t index);

// True for a ring in which a reader waits for the end of a pipe or connection, and nobody writes. The next process of
// the ring has the other end open. In a ring of one link, the reader itself has the other end open. A longer ring must
// also contain a wait for the end of a child.
bool is_held_open(const Cycle& cycle);
bool is_reader(const model::Wait& wait);

// Names the object that the thread waits for: "queue_mutex", "the mutex at 0x55d0c0", "/run/a.lock", "pipe:[17]".
std::string object(const model::Wait& wait);
// Names the thread of the link: "thread 12 "a"". With `names_process`: "thread 12 "a" of process 5", or "process 5 "a""
// for the first thread of a process.
std::string thread(const Evidence& evidence, const Link& link, bool names_process);
bool is_of_one_process(const Cycle& cycle);

}  // namespace forksight::cycles
