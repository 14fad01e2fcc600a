// The parent had armed a timer before the fork. The child waits only for the signal of that timer. A child does not
// inherit timers. So the child waits for ever, unless another process sends the signal. It is not proven that no
// process will send it.
#include <fmt/core.h>

#include <algorithm>
#include <csignal>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

bool is_awaited(const model::ArmedTimer& timer, const model::Touch& touch) {
  return (touch.object >> static_cast<unsigned>(timer.signal - 1) & 1U) != 0;
}

// True if the set contains only SIGALRM. As a rule only a timer sends SIGALRM. Processes notify each other by other
// signals.
bool is_of_timers(std::uint64_t signals) { return signals == std::uint64_t{1} << (SIGALRM - 1); }

std::string describe_timer(const model::ArmedTimer& timer) {
  const char* const kind = timer.kind == model::TimerKind::kReal ? "alarm() or setitimer()" : "timer_create()";
  const std::string when = words::duration(timer.remaining_ns / words::kNsPerMs);
  const std::string again = timer.interval_ns == 0
                                ? std::string("once")
                                : fmt::format("every {}", words::duration(timer.interval_ns / words::kNsPerMs));
  return fmt::format("a timer of {} was to send {} {} later, {}", kind,
                     words::signals(std::uint64_t{1} << static_cast<unsigned>(timer.signal - 1)), when, again);
}

Finding describe(const Evidence& evidence, const model::Touch& touch, const model::ArmedTimer& timer) {
  const model::Fork& fork = evidence.fork(touch);
  const model::Process& child = evidence.process(touch.process);
  const std::string signals = words::signals(touch.object);
  const std::string parent = words::parent(evidence.process(fork.process));
  Finding finding = evidence.begin_finding("timer-lost", touch);
  finding.harm = is_of_timers(touch.object) ? Certainty::kLikely : Certainty::kPossible;
  finding.cause = finding.harm;
  finding.outcome = Outcome::kMayHang;
  finding.culprit.kind = CulpritKind::kTimer;
  finding.culprit.name = fmt::format("the timer that sends {}", signals);
  finding.summary = fmt::format(
      "{} waits for {}{}: the timer that sends it was armed in {} before fork(){}, and is not "
      "inherited",
      evidence.name(touch.process), signals, words::at(" at ", touch.stack), parent, words::at(" at ", fork.stack));
  add_sentence(finding, fmt::format("Thread {} of {} waits{} for {} and nothing else, without a deadline.", touch.tid,
                                    evidence.name(touch.process), words::at(" at ", touch.stack), signals));
  add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(finding, fmt::format("When {} called fork(){}, {}.", parent, words::at(" at ", fork.stack),
                                    describe_timer(timer)));
  add_sentence(finding,
               "A forked child has no timers: those of alarm(), setitimer() and timer_create() stay with the parent. "
               "This child had no timer for the signal when it began to wait, so only another process could send it.");
  add_sentence(finding, describe_end(child));
  finding.fixes.push_back(
      {"Arm the timer in the child, too, after fork(). A timer of timer_create() must be created again there.", true});
  finding.fixes.push_back(
      {"Wait with a deadline (sigtimedwait()), or use timerfd_create(): its descriptor is inherited, and shared."});
  return finding;
}

}  // namespace

void timer_lost(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    if (touch.kind != model::TouchKind::kTimerWait || !evidence.find_hang(touch)) continue;
    const auto& timers = evidence.fork(touch).timers;
    const auto timer = std::ranges::find_if(timers, [&](const auto& one) { return is_awaited(one, touch); });
    if (timer != timers.end()) findings.push_back(describe(evidence, touch, *timer));
  }
}

}  // namespace forksight::rules
