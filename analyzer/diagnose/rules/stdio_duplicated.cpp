// At a fork, bytes were in the buffer of a stdio stream, and two or more processes have written these bytes since. So
// the output contains the bytes more than once. If only one process wrote the bytes, nothing is wrong.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using model::Flush;
using model::FlushKind;

// Returns the first flush of each process.
std::vector<const Flush*> by_process(const model::UnflushedOutput& output) {
  std::vector<const Flush*> flushes;
  for (const Flush& flush : output.flushes) {
    const bool known =
        std::ranges::any_of(flushes, [&](const Flush* other) { return other->process == flush.process; });
    if (!known) flushes.push_back(&flush);
  }
  return flushes;
}

// Returns the first flush by a forked process. The bytes that this process wrote are the superfluous copy.
const Flush* find_child(const Evidence& evidence, const std::vector<const Flush*>& flushes) {
  const auto found = std::ranges::find_if(flushes, [&](const Flush* flush) {
    return flush->fork && evidence.model().forks[*flush->fork].child == flush->process;
  });
  return found == flushes.end() ? nullptr : *found;
}

std::string stream_name(const model::UnflushedOutput& output) {
  constexpr const char* kNames[] = {"stdin", "stdout", "stderr"};
  if (output.number >= 0 && output.number < 3) return kNames[output.number];
  return fmt::format("the stream of file descriptor {}", output.fd);
}

std::string how(const Flush& flush) {
  const std::string where = words::at(" at ", flush.stack);
  switch (flush.kind) {
    case FlushKind::kFlush: return fmt::format("by fflush(){}", where);
    case FlushKind::kClose: return fmt::format("by fclose(){}", where);
    case FlushKind::kAtExit: return fmt::format("when it ended{}: exit() flushes all streams", where);
    case FlushKind::kGone: break;
  }
  return "when it wrote more to the stream";
}

// Returns the readable beginning of the bytes: all bytes before the first one that is not plain text.
std::string beginning(const model::UnflushedOutput& output) {
  const auto end = std::ranges::find_if(output.text, [](char letter) { return letter < ' ' || letter > '~'; });
  const std::string text(output.text.begin(), end);
  const bool more = output.bytes > text.size();
  return text.empty() ? std::string() : fmt::format("They begin with \"{}\"{}", text, more ? " ..." : ".");
}

Finding describe(const Evidence& evidence, const model::UnflushedOutput& output,
                 const std::vector<const Flush*>& flushes, const Flush& child) {
  const model::Fork& fork = evidence.model().forks[*child.fork];
  const std::string stream = stream_name(output);
  const std::string bytes = words::count(output.bytes, "byte", "bytes");
  const std::string times = flushes.size() == 2 ? std::string("twice") : fmt::format("{} times", flushes.size());
  Finding finding = evidence.begin_finding("stdio-duplicated", fork);
  finding.harm = Certainty::kProven;
  finding.cause = Certainty::kProven;
  finding.outcome = Outcome::kCorruption;
  finding.process = child.process;
  finding.processes = {child.process};
  finding.tid = child.tid;
  finding.stack = child.stack;
  finding.culprit.kind = CulpritKind::kStream;
  finding.culprit.name = fmt::format("{} of {}", bytes, stream);
  finding.summary = fmt::format("{} of {} come out {}: they were not flushed at fork(){}, and {} wrote its copy", bytes,
                                stream, times, words::at(" at ", fork.stack), evidence.name(child.process));
  add_sentence(finding, fmt::format("At fork(){} the {} had been printed, but were still in the buffer of {}. fork() "
                                    "copies it with all other memory.",
                                    words::at(" at ", fork.stack), bytes, stream));
  add_sentence(finding, beginning(output));
  for (const Flush* flush : flushes) {
    add_sentence(finding, fmt::format("{} wrote them {}.", evidence.name(flush->process), how(*flush)));
    if (flush->process != child.process && flush->fork) finding.processes.push_back(flush->process);
  }
  finding.fixes.push_back({"Call fflush(NULL) before fork().", true});
  finding.fixes.push_back({"End a child that has printed nothing of its own by _exit(), which flushes nothing.", true});
  return finding;
}

}  // namespace

void stdio_duplicated(const Evidence& evidence, FindingList& findings) {
  for (const model::UnflushedOutput& output : evidence.model().unflushed) {
    const std::vector<const Flush*> flushes = by_process(output);
    const Flush* const child = find_child(evidence, flushes);
    if (flushes.size() < 2 || child == nullptr) continue;
    findings.push_back(describe(evidence, output, flushes, *child));
  }
}

}  // namespace forksight::rules
