// Processes communicate by pipes or sockets. Each of them waits until another one reads or writes first.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>
#include <set>

#include "diagnose/pools.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// Returns the last part of the summary, for a process that itself has the other end of the pipe or socket at which it
// waits.
std::string tell_own_end(const model::Wait& wait, std::int32_t own) {
  std::set<std::int32_t> others;
  for (const model::Waker& waker : wait.wakers) {
    if (waker.pid != own && model::is_waited_for(waker.via)) others.insert(waker.pid);
  }
  if (others.empty()) return "no other process has the other end";
  const char* const have = others.size() == 1 ? "has process" : "have processes";
  return fmt::format("it itself has the other end; so {} {}, which {} stuck, too", have, fmt::join(others, ", "),
                     others.size() == 1 ? "is" : "are");
}

// True if the thread waits in the selector of an asyncio event loop (BaseEventLoop._run_once of
// asyncio/base_events.py). False if a coroutine blocks in a call of its own.
bool is_in_selector_of_asyncio(const model::Wait& wait) {
  if (wait.kind != model::WaitKind::kPoll) return false;
  auto python = wait.stack.frames | std::views::filter(&model::Frame::python);
  const auto select = python.begin();
  if (select == python.end() || !select->file.ends_with("selectors.py")) return false;
  const auto caller = std::next(select);
  return caller != python.end() && caller->file.find("/asyncio/") != std::string::npos;
}

// Returns words such as "in epoll_wait()".
std::string name_poll(const model::Wait& wait) {
  if (is_in_selector_of_asyncio(wait)) return "in the event loop of asyncio";
  return wait.call.starts_with("in ") ? wait.call + "()" : "in poll()";
}

// Returns the fork that made the process, if that fork left threads behind; else null.
const model::Fork* find_loss(const Evidence& evidence, model::ProcessId child) {
  for (const model::ForkId id : evidence.forks_that_made(child)) {
    const model::Fork& fork = evidence.model().forks[id];
    if (!fork.lost_threads.empty() || fork.unknown_threads > 0) return &fork;
  }
  return nullptr;
}

void add_fixes_of_one(const Evidence& evidence, const model::Wait& wait, Finding& finding) {
  if (is_in_selector_of_asyncio(wait)) {
    add_sentence(finding,
                 "It is an event loop of asyncio, and it watches only descriptors of its own process: its tasks wait "
                 "for each other, or for a future that nobody is left to set.");
    // Perhaps a lost thread should have set the future. An example is a worker of an executor that was made before the
    // fork.
    if (const model::Fork* const loss = find_loss(evidence, finding.process)) {
      finding.cause = Certainty::kPossible;
      add_sentence(finding, pools::describe_lost_threads(evidence, {loss, finding.process, nullptr}));
      finding.fixes.push_back(
          {"Make each executor that the coroutines use (loop.run_in_executor()) in the child; or start the child by "
           "spawn or forkserver."});
    }
    finding.fixes.push_back(
        {"Find the tasks: let a thread call task.print_stack() for each of asyncio.all_tasks(loop) when nothing "
         "moves."});
    finding.fixes.push_back({"Await with a time limit (asyncio.wait_for), and treat its end as an error.", true});
    return;
  }
  finding.fixes.push_back({"Let another thread or process write what this one waits for, or do not wait for it."});
}

}  // namespace

void pipe_deadlock(const Evidence& evidence, FindingList& findings) {
  cycles::OtherFindings others(evidence);
  for (cycles::Cycle cycle : evidence.cycles()) {
    if (!cycles::is_made_of(cycle, {"pipe", "socket", "eventfd", "wait4", "mutex", "rwlock", "join"}) ||
        others.explain(cycle, findings))
      continue;
    const auto carries_bytes = [&](const char* via) { return cycles::has_via(cycle, via); };
    if (std::ranges::none_of(std::array{"pipe", "socket", "eventfd"}, carries_bytes)) continue;
    if (cycles::is_held_open(cycle)) continue;  // the rule pipe-held-open reports it
    const auto writes = [](const cycles::Link& link) {
      return link.wait->kind == model::WaitKind::kPipeWrite || link.wait->kind == model::WaitKind::kSocketWrite ||
             link.wait->kind == model::WaitKind::kEventfdWrite;
    };
    const auto transfers = [&](const cycles::Link& link) {
      return writes(link) || cycles::is_reader(*link.wait) || link.wait->kind == model::WaitKind::kEventfd;
    };
    const auto writer = std::ranges::find_if(cycle, writes);
    const bool is_full = writer != cycle.end();
    auto begin = is_full ? writer : std::ranges::find_if(cycle, transfers);
    const bool polls = begin == cycle.end();  // true: it is not known for which of its descriptors the thread waits
    const auto is_poll = [](const cycles::Link& link) { return link.wait->kind == model::WaitKind::kPoll; };
    if (polls) begin = std::ranges::find_if(cycle, is_poll);
    if (begin != cycle.end()) std::rotate(cycle.begin(), begin, cycle.end());
    const cycles::Link& first = cycle.front();
    const cycles::Link& second = cycle[1 % cycle.size()];
    const bool waits_for_end = second.waker->via == "wait4" && cycle.size() == 2;
    const bool is_in_one = cycle.size() > 1 && cycles::is_of_one_process(cycle);
    const bool has_lock = !cycles::is_made_of(cycle, {"pipe", "socket", "eventfd", "wait4"});
    Finding finding = cycles::begin_finding("pipe-deadlock", evidence, cycle);
    const model::Process& process = evidence.process(finding.process);
    finding.culprit.kind = CulpritKind::kPipe;
    finding.culprit.name = cycles::object(*first.wait);
    const std::string what =
        polls ? fmt::format("{}{}", name_poll(*first.wait), words::at(" at ", first.wait->stack))
              : fmt::format("{} {}", is_full ? "writing to" : "reading from", cycles::object(*first.wait));
    const std::string other =
        cycle.size() == 1 ? tell_own_end(*first.wait, process.pid)
        : is_in_one
            ? fmt::format("{} of the same process {}", cycles::thread(evidence, second, false),
                          has_lock ? fmt::format("waits, too: only {} could end that wait",
                                                 cycles::thread(evidence, first, false))
                                   : "waits for this thread")
            : fmt::format("process {} {}", first.waker->pid,
                          waits_for_end ? fmt::format("waits for its end{}{}", words::at(" at ", second.wait->stack),
                                                      is_full ? " instead of reading" : "")
                          : has_lock    ? fmt::format("waits, too: only process {} could end that wait", process.pid)
                                        : "waits for this process");
    finding.summary = fmt::format("{} {} {}{}, and {}", evidence.name(finding.process), hangs(process), what,
                                  polls ? std::string() : words::at(" at ", first.wait->stack), other);
    cycles::tell(evidence, cycle, finding);
    if (is_full) {
      add_sentence(finding, first.wait->kind == model::WaitKind::kEventfdWrite
                                ? "The count of an eventfd has a limit (2^64 - 2): a writer sleeps until the count is "
                                  "read, which sets it to zero."
                                : "A pipe or socket takes a limited number of bytes (a pipe 64 KiB): a writer sleeps "
                                  "until the other side reads.");
      finding.fixes.push_back(
          {waits_for_end
               ? "Read all that the child writes before waiting for its end (Python: communicate(), not wait(); for a "
                 "multiprocessing.Queue: get() before join())."
               : "Read while there is still something to write: poll() both directions, or a thread for each."});
      finding.fixes.push_back({"Set O_NONBLOCK on the descriptors, and give up writing for a while on EAGAIN."});
    } else if (cycle.size() == 1) {
      add_fixes_of_one(evidence, *first.wait, finding);
    } else if (has_lock) {
      const char* const party = is_in_one ? "thread" : "process";
      add_sentence(finding, fmt::format("The {} that should write waits for something that the reading {} holds. The "
                                        "reader gives it back only after it has read.",
                                        party, party));
      finding.fixes.push_back(
          {fmt::format("Release the lock before waiting for data from another {}, or for its end.", party)});
    } else if (polls && waits_for_end) {
      add_sentence(finding, fmt::format("While process {} waits, it neither uses the other end nor closes it. So "
                                        "process {} gets no data, no room for its own data, and no end of file.",
                                        first.waker->pid, process.pid));
      finding.fixes.push_back({"Close the other end, or write to it, before waiting for the end of the process."});
    } else {
      add_sentence(finding, fmt::format("Each {} waits until another one of them writes first.",
                                        is_in_one ? "thread" : "process"));
      finding.fixes.push_back(
          {"Define in the protocol which side writes at which time. Flush buffered output before waiting for an "
           "answer."});
      finding.fixes.push_back({"Wait for an answer with a time limit: poll() with a timeout, SO_RCVTIMEO."});
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
