#include "render/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "diagnose/words.hpp"
#include "render/names.hpp"
#include "render/page.hpp"
#include "render/scope.hpp"
#include "render/stack_rows.hpp"

namespace forksight::render {

namespace {

constexpr std::size_t kMostPids = 8;
constexpr std::size_t kMostSentences = 12;  // a screen of sentences, if each takes two lines
constexpr std::size_t kMostFiles = 8;       // the most files that one sentence names
constexpr std::size_t kMostFindings = 100;  // nobody reads more, and the most certain ones come first

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

Style style_of(const Finding& finding) { return finding.harm == Certainty::kProven ? Style::kBad : Style::kWarn; }

// Returns words such as "CERTAIN HANG", "CERTAIN HANG, possible cause" or "LIKELY ERROR".
std::string kind_of(const Finding& finding) {
  const Outcome outcome = finding.outcome == Outcome::kMayHang ? Outcome::kHang : finding.outcome;
  const char* const harm = finding.harm == Certainty::kProven ? "certain" : name_of(finding.harm);
  std::string text = upper(fmt::format("{} {}", harm, name_of(outcome)));
  if (finding.cause == Certainty::kUnknown) return text + ", cause unknown";
  return finding.cause >= finding.harm ? text : fmt::format("{}, {} cause", text, name_of(finding.cause));
}

class TextReport {
 public:
  TextReport(const model::Model& model, const std::vector<Finding>& findings, const TextOptions& options,
             const std::vector<std::string>& unexplained)
      : model_(model), findings_(findings), options_(options), unexplained_(unexplained), page_(options) {}

  std::string render() {
    head();
    std::size_t number = 0;
    for (const Finding& finding : findings_) {
      if (finding.outcome != Outcome::kCured && may_describe(number)) describe(++number, finding);
    }
    cured(number);
    if (number < findings_.size()) {
      page_.blank();
      page_.paragraph(Style::kBold, fmt::format("{}; --full shows all", words::count(findings_.size() - number,
                                                                                     "more finding", "more findings")));
    }
    return page_.take();
  }

 private:
  // `number`: how many findings the report describes already.
  bool may_describe(std::size_t number) const { return options_.full || number < kMostFindings; }

  void head() {
    // If a process with one thread forks, the fork is recorded only for one of these reasons: the process has output
    // that it has not written, it shares files with the child, or the child draws random numbers.
    const bool only_threads = model_.unflushed.empty() && model_.shares.empty() && model_.draws.empty();
    const bool had_threads = only_threads || std::ranges::all_of(model_.forks, lost_threads);
    const std::vector<bool> is_counted = find_counted(model_, findings_);
    // An inferred fork that lost no thread is not counted. The model contains it only because a thread that had ended
    // still held a lock.
    const auto count = static_cast<std::size_t>(std::ranges::count_if(model_.forks, [&](const model::Fork& fork) {
      return is_counted[fork.child.value_or(fork.process)] && (!fork.is_inferred || lost_threads(fork));
    }));
    const auto members = static_cast<std::size_t>(std::ranges::count(is_counted, true));
    const std::string forks =
        had_threads || count != model_.forks.size()
            ? words::count(count, "fork of a process with threads", "forks of processes with threads")
            : words::count(count, "fork", "forks");
    const std::string processes = words::count(members, "process", "processes");
    const std::string seen = count == 0 ? processes : fmt::format("{}, {}", processes, forks);
    const std::string hangs = words::count(unexplained_.size(), "unexplained hang", "unexplained hangs");
    std::string found = findings_.empty() ? "nothing found" : words::count(findings_.size(), "finding", "findings");
    if (!unexplained_.empty()) found = findings_.empty() ? hangs : fmt::format("{} and {}", found, hangs);
    page_.headline(Style::kBold, fmt::format("forksight: {} in {}", found, seen));
    for (const std::string& sentence : fold(unexplained_, "unexplained hangs", options_))
      page_.item(Style::kWarn, "-", sentence);
  }

  void describe(std::size_t number, const Finding& finding) {
    page_.blank();
    const std::string times = finding.count > 1 ? fmt::format(", {} times", finding.count) : std::string();
    page_.headline(style_of(finding), fmt::format("{}. {}: {}{}", number, kind_of(finding), finding.rule, times));
    page_.headline(Style::kBold, finding.summary);
    page_.blank();
    affected_process(finding);
    culprit(finding);
    if (finding.fork && finding.fork->stack.known()) {
      page_.labelled("Forked", fmt::format("by process {}:", finding.fork->pid));
      stack(finding.fork->stack);
    }
    page_.labelled("Why", "");
    for (const std::string& sentence : finding.chain) page_.item(Style::kFaint, "-", sentence);
    affected(finding);
    page_.labelled("What to do", "");
    for (const Fix& fix : finding.fixes) {
      page_.item(fix.verified ? Style::kGood : Style::kFaint, fix.verified ? "[tested]" : "-", fix.text);
    }
    page_.labelled("More", fmt::format("forksight explain {}   (fingerprint {})", finding.rule, finding.fingerprint));
  }

  // Describes the hazards that were cured. The text is short, because a cured hazard did no harm. It says what to
  // change in the program. `number`: how many findings the report describes already. Is advanced.
  void cured(std::size_t& number) {
    bool is_first = true;
    for (const Finding& finding : findings_) {
      if (finding.outcome != Outcome::kCured || !may_describe(number)) continue;
      if (is_first) {
        page_.blank();
        page_.paragraph(
            Style::kGood,
            "forksight cured these hazards. Without forksight, each of them could have stopped the program:");
      }
      is_first = false;
      page_.blank();
      const std::string times = finding.count > 1 ? fmt::format(", {} times", finding.count) : std::string();
      page_.headline(Style::kGood, fmt::format("{}. CURED: {}{}", ++number, finding.rule, times));
      page_.headline(Style::kBold, finding.summary);
      if (finding.stack.known()) page_.labelled("Where", "");
      stack(finding.stack);
      if (finding.processes.size() > 1) page_.labelled("Found in", places(finding));
      // Shows only the sentences of the chain that say what forksight did, and what risk that brings.
      page_.labelled("How", "");
      for (const std::string& sentence : finding.chain) {
        if (sentence.starts_with("forksight ")) page_.item(Style::kFaint, "-", sentence);
      }
      page_.labelled("To fix the program", "");
      for (const Fix& fix : finding.fixes) {
        if (fix.text.find("forksight run") == std::string::npos) page_.item(Style::kFaint, "-", fix.text);
      }
      page_.labelled("More", fmt::format("forksight explain {}   (fingerprint {})", finding.rule, finding.fingerprint));
    }
  }

  bool has_several_hosts() const {
    return std::ranges::any_of(
        model_.processes, [&](const model::Process& process) { return process.host != model_.processes.front().host; });
  }

  void affected_process(const Finding& finding) {
    const model::Process& process = model_.processes[finding.process];
    const std::string_view program = words::base_name(process.exe);
    const bool is_first = finding.tid == process.pid;
    std::string text = is_first ? fmt::format("process {}", process.pid)
                                : fmt::format("thread {}{} of process {}", finding.tid,
                                              words::name_in_quotes(finding.thread_name), process.pid);
    // The kernel cuts a thread's name after 15 bytes. So the name of the first thread may be the beginning of
    // `program`.
    if (is_first && !program.starts_with(finding.thread_name)) text += words::name_in_quotes(finding.thread_name);
    if (!program.empty()) text += fmt::format(" ({})", program);
    if (process.rank >= 0) text += fmt::format(", rank {}", process.rank);
    if (has_several_hosts()) text += fmt::format(" on {}", process.host);
    if (process.stuck_for_ms > 0) text += fmt::format(", stuck for {}", words::duration(process.stuck_for_ms));
    const char* const label = finding.outcome == Outcome::kError        ? "What fails"
                              : finding.outcome == Outcome::kCorruption ? "What is wrong"
                              : finding.harm == Certainty::kPossible    ? "What may hang"
                                                                        : "What hangs";
    page_.labelled(label, text);
    stack(finding.stack);
  }

  static const char* stack_label(const Culprit& culprit) {
    if (culprit.is_at_fork) return "at the fork it was here:";
    if (culprit.is_now)
      return culprit.kind == CulpritKind::kHandler ? "what it waits for is now here:" : "it is now here:";
    if (culprit.kind == CulpritKind::kThread) return "the first of these threads was created here:";
    if (culprit.kind == CulpritKind::kHandler) return "what it waits for was taken or made here:";
    if (culprit.kind == CulpritKind::kStream) return "the other process used it here:";
    if (culprit.kind == CulpritKind::kProcess) return "removed here:";
    if (culprit.kind == CulpritKind::kMemory) return "exported, opened or freed here:";
    if (culprit.kind == CulpritKind::kFileLock) return "taken here:";
    return culprit.kind == CulpritKind::kDevice ? "initialised here:" : "made here:";
  }

  void culprit(const Finding& finding) {
    const Culprit& culprit = finding.culprit;
    const bool is_lock = culprit.kind == CulpritKind::kLock;
    std::string text = culprit.name;
    if (!culprit.library.empty())
      text += fmt::format(", {} {}", is_lock ? "in" : "of", words::base_name(culprit.library));
    page_.labelled("On", text);
    if (is_lock && culprit.holder) {
      const Holder& holder = *culprit.holder;
      const std::string parent = holder.pid == 0 ? "its parent" : fmt::format("process {}", holder.pid);
      std::string held = holder.tid == 0 ? "a thread of " + parent
                         : holder.tid == holder.pid
                             ? "the first thread of " + parent
                             : fmt::format("thread {}{} of {}", holder.tid, words::name_in_quotes(holder.name), parent);
      if (!holder.start_routine.empty()) held += fmt::format(", started with {}", holder.start_routine);
      if (!holder.library.empty())
        held +=
            fmt::format("{} in {}", holder.start_routine.empty() ? ", started" : "", words::base_name(holder.library));
      const char* const verb = culprit.is_waited_for ? "waits" : "took it";
      const std::string where = !culprit.stack.known() ? fmt::format("; where it {} is not known", verb)
                                : culprit.is_at_fork   ? std::string("; at the fork it was here:")
                                : culprit.is_now       ? std::string("; it is now here:")
                                                       : fmt::format("; it {} here:", verb);
      // If the cause is only possible, the lock may not record its holder. Then the rule guesses the holder. For
      // example, a rwlock does not record its readers.
      const char* const guess = finding.cause == Certainty::kPossible ? "possibly " : "";
      page_.labelled(culprit.is_waited_for ? "Waited for by" : "Held by", guess + held + where);
    } else if (culprit.stack.known()) {
      page_.labelled("", stack_label(culprit));
    }
    stack(culprit.stack);
  }

  void affected(const Finding& finding) {
    if (finding.processes.size() > 1) page_.labelled("Found in", places(finding));
    const std::size_t count = finding.victims.size() + finding.more_victims;
    if (count == 0) return;
    const std::size_t named = std::min(finding.victims.size(), kMostPids);
    std::string text;
    for (std::size_t i = 0; i < named; ++i) {
      const Victim& victim = finding.victims[i];
      text += fmt::format("{}process {}{}", i == 0 ? "" : ", ", victim.pid,
                          victim.via.empty() ? "" : " (" + victim.via + ")");
    }
    if (named == 0) {
      text = words::count(count, "process", "processes");
    } else if (count > named) {
      text += fmt::format(" and {} more", count - named);
    }
    page_.labelled("Waiting", text + (count == 1 ? " waits for this: a victim, not the cause"
                                                 : " wait for this: victims, not causes"));
  }

  // Returns a text like "64 processes: ranks 0-63 of 64, on 8 hosts, first on node3".
  std::string places(const Finding& finding) const {
    std::set<int> ranks;
    std::set<std::string> hosts;
    int world_size = -1;
    std::string pids;
    for (std::size_t i = 0; i < finding.processes.size(); ++i) {
      const model::Process& process = model_.processes[finding.processes[i]];
      if (process.rank >= 0) ranks.insert(process.rank);
      world_size = std::max(world_size, process.world_size);
      hosts.insert(process.host);
      if (i < kMostPids) pids += fmt::format("{}{}", i == 0 ? "" : ", ", process.pid);
    }
    if (finding.processes.size() > kMostPids) pids += ", ...";
    std::string text = words::count(finding.processes.size(), "process", "processes");
    if (!ranks.empty()) {
      text += fmt::format(": {} {}", ranks.size() == 1 ? "rank" : "ranks", ranges(ranks));
      if (world_size > 0) text += fmt::format(" of {}", world_size);
    } else {
      text += ": " + pids;
    }
    const std::string& first = model_.processes[finding.process].host;
    if (hosts.size() > 1) text += fmt::format(", on {} hosts, first on {}", hosts.size(), first);
    return text;
  }

  static std::string ranges(const std::set<int>& numbers) {
    std::string text;
    for (auto at = numbers.begin(); at != numbers.end();) {
      const int first = *at;
      int last = first;
      for (++at; at != numbers.end() && *at == last + 1; ++at) last = *at;
      text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
      if (last > first) text += fmt::format("-{}", last);
    }
    return text;
  }

  void stack(const model::Stack& stack) { add_stack(page_, stack, options_); }

  const model::Model& model_;
  const std::vector<Finding>& findings_;
  const TextOptions& options_;
  const std::vector<std::string>& unexplained_;
  Page page_;
};

// Splits a sentence like "/usr/lib/libfoo.so: is stripped: ..." into the file and what the sentence says about it.
std::pair<std::string_view, std::string_view> split_limit(std::string_view limit) {
  const std::size_t end = limit.find(": ");
  if (!limit.starts_with('/') || end == std::string_view::npos) return {{}, limit};
  return {limit.substr(0, end), limit.substr(end + 2)};
}

std::string join_files(const std::vector<std::string_view>& files) {
  const std::size_t shown = std::min(files.size(), kMostFiles);
  const std::string names =
      fmt::format("{}", fmt::join(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return files.size() == shown ? names : fmt::format("{} and {} more", names, files.size() - shown);
}

}  // namespace

std::string render_text(const model::Model& model, const std::vector<Finding>& findings, const TextOptions& options,
                        const std::vector<std::string>& unexplained) {
  return TextReport(model, findings, options, unexplained).render();
}

std::string render_line(std::string_view text, const TextOptions& options) {
  Page page(options);
  page.headline(Style::kPlain, text);
  return page.take();
}

std::string render_list(std::string_view title, const std::vector<std::string>& lines, const TextOptions& options) {
  Page page(options);
  page.headline(Style::kBold, title);
  for (const std::string& line : lines) page.item(Style::kFaint, "-", line);
  return page.take();
}

std::vector<std::string> fold(const std::vector<std::string>& sentences, std::string_view what,
                              const TextOptions& options) {
  if (options.full || sentences.size() <= kMostSentences) return sentences;
  std::vector<std::string> kept(sentences.begin(), sentences.begin() + kMostSentences);
  kept.push_back(fmt::format("{} more {}; --format json has them all", sentences.size() - kMostSentences, what));
  return kept;
}

std::vector<std::string> merge_limits(const std::vector<std::string>& limits) {
  std::vector<std::string_view> order;
  std::map<std::string_view, std::vector<std::string_view>> files;
  for (const std::string& limit : limits) {
    const auto [file, what] = split_limit(limit);
    const auto [at, is_new] = files.try_emplace(what);
    if (is_new) order.push_back(what);
    if (!file.empty() && std::ranges::find(at->second, file) == at->second.end()) at->second.push_back(file);
  }
  std::vector<std::string> merged;
  for (const std::string_view what : order) {
    const auto& of = files.at(what);
    if (of.empty()) {
      merged.emplace_back(what);
    } else if (of.size() == 1) {
      merged.push_back(fmt::format("{}: {}", of.front(), what));
    } else if (what.starts_with("is ") || what.starts_with("cannot ")) {
      merged.push_back(fmt::format("Each of these {} files {}: {}", of.size(), what, join_files(of)));
    } else {
      merged.push_back(fmt::format("For each of these {} files: {}: {}", of.size(), what, join_files(of)));
    }
  }
  return merged;
}

std::string render_limits(const std::vector<std::string>& limits, const TextOptions& options) {
  if (limits.empty()) return {};
  const std::vector<std::string> lines = fold(merge_limits(limits), "sentences like these", options);
  return render_list("What could not be seen:", lines, options);
}

}  // namespace forksight::render
