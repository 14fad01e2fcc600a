// A child was made by _Fork(), clone() or the bare system call. No atfork handler ran. So the locks of malloc, of
// streams and of the loader are as they were at the fork. The shim does not see when the child touches these locks. So
// the rule reports a child that is proven dead and waits in a futex. If this futex is the lock of a stream that another
// thread held at the fork, the cause is known.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

const char* stream_name(int number) { return number == 0 ? "stdin" : number == 2 ? "stderr" : "stdout"; }

const model::LockedStream* find_stream(const model::Process& child, const model::Fork& fork) {
  for (const model::Wait& wait : child.waits) {
    const auto at = std::ranges::find(fork.streams, wait.object, &model::LockedStream::lock);
    if (wait.kind == model::WaitKind::kFutex && at != fork.streams.end()) return &*at;
  }
  return nullptr;
}

const char* name_call(const model::Fork& fork) {
  if (fork.by_syscall) return fork.by_clone ? "syscall(SYS_clone)" : "syscall(SYS_fork)";
  return fork.by_clone ? "clone()" : "_Fork()";
}

Finding describe(const Evidence& evidence, const model::Fork& fork) {
  const model::Model& model = evidence.model();
  const model::Process& child = evidence.process(*fork.child);
  const model::LockedStream* const stream = find_stream(child, fork);
  const char* const how = name_call(fork);
  const std::string where = words::at(" at ", fork.stack);
  Finding finding = evidence.begin_finding("atfork-bypassed", fork);
  finding.harm = stream != nullptr ? Certainty::kProven : Certainty::kLikely;
  finding.cause = stream != nullptr ? Certainty::kProven : Certainty::kPossible;
  finding.outcome = Outcome::kHang;
  // If the futex is not the lock of a stream, it is not known what the futex belongs to. Then a signal handler may end
  // the wait, and perhaps the program is meant to sleep until the handler runs.
  if (stream == nullptr && has_way_out(child)) set_may_be_intended(finding);
  finding.culprit.kind = CulpritKind::kLock;
  const std::size_t lost = fork.lost_threads.size() + fork.unknown_threads;
  std::string cause =
      fmt::format("it was made by {}{}, which resets none of libc's locks and left behind {} of its parent", how, where,
                  words::count(lost, "thread", "threads"));
  std::string lock = "a futex that no task can wake";
  if (stream != nullptr) {
    const model::Thread& holder = model.threads[stream->thread];
    lock = fmt::format("the lock of {}", stream_name(stream->number));
    cause = fmt::format("{} held it when {}{} made the child, and that call resets no lock", words::thread(holder), how,
                        where);
    finding.culprit.address = stream->lock;
    finding.culprit.library = "libc.so.6";
    finding.culprit.holder = evidence.holder(holder);
  }
  finding.culprit.name = stream != nullptr ? lock : "a lock inside of libc";
  finding.summary = fmt::format("{} {} in {}: {}", evidence.name(*fork.child), hangs(child), lock, cause);
  add_sentence(finding, evidence.describe_liveness(child));
  if (stream != nullptr) {
    add_sentence(finding, fmt::format("The futex that it sleeps in is {}, which {} of {} had locked.", lock,
                                      words::thread(model.threads[stream->thread]),
                                      words::parent(evidence.process(fork.process))));
  } else {
    add_sentence(
        finding,
        "It is not known which lock the child waits for: forksight saw no operation of the child on a lock that "
        "forksight knows.");
  }
  add_sentence(finding,
               fmt::format("{} runs no atfork handler, and libc does not put its own locks in order in such a child: "
                           "the locks of malloc, of streams and of the loader stay as other threads held them.",
                           how));
  add_sentence(finding, describe_end(child));
  finding.fixes.push_back({"Use fork(), which resets these locks in the child.", true});
  finding.fixes.push_back(
      {fmt::format("After {} call only async-signal-safe functions (signal-safety(7)), then exec or _exit.", how)});
  finding.fixes.push_back({"Exec in the child, or use posix_spawn()."});
  return finding;
}

}  // namespace

void atfork_bypassed(const Evidence& evidence, FindingList& findings) {
  for (const model::Fork& fork : evidence.model().forks) {
    const model::Process* const child = evidence.find_untouched_child(fork);
    if (!fork.bypassed || child == nullptr || evidence.find_open_wait(*fork.child) != nullptr) continue;
    if (fork.lost_threads.size() + fork.unknown_threads == 0) continue;
    if (words::is_in_signal_handler(fork.stack)) continue;  // the rule fork-in-signal-handler reports it
    if (is_dead_in_futex(*child)) findings.push_back(describe(evidence, fork));
  }
}

}  // namespace forksight::rules
