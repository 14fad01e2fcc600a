// A process frees device memory or ends, while another process has this memory open. CUDA does not define what happens
// then. A free is reported as soon as the order of the calls is known. An end is reported only if the memory was used
// afterwards, because it does no harm if processes just end one after the other.
#include <fmt/core.h>

#include <vector>

#include "diagnose/cuda_ipc.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using cuda::Export;
using cuda::Import;
using cuda::IpcCall;
using cuda::Sharing;

std::string milliseconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return words::duration((to_ns - from_ns) / words::kNsPerMs);
}

Finding begin(const Evidence& evidence, const Import& import) {
  Finding finding = cuda::begin_finding("cuda-ipc-exporter-gone", *import.open);
  finding.harm = Certainty::kProven;
  finding.cause = Certainty::kProven;
  finding.outcome = Outcome::kCorruption;
  finding.culprit = cuda::describe_memory(evidence, *import.of);
  return finding;
}

void tell_open(const Evidence& evidence, const Import& import, Finding& finding) {
  const std::string exporter = evidence.name(import.of->call->process);
  add_sentence(finding, fmt::format("{} exported the memory{}; {} opened it{}.", exporter,
                                    words::at(" at ", import.of->call->stack), evidence.name(import.open->process),
                                    words::at(" at ", import.open->stack)));
}

Finding describe_free(const Evidence& evidence, const Import& import) {
  const IpcCall& freed = *import.of->freed;
  const std::string exporter = evidence.name(freed.process);
  const std::string importer = evidence.name(import.open->process);
  Finding finding = begin(evidence, import);
  finding.culprit.stack = freed.stack;
  finding.summary = fmt::format("{} freed device memory{} that {} had open{}: undefined in CUDA", exporter,
                                words::at(" at ", freed.stack), importer, words::at(" since ", import.open->stack));
  tell_open(evidence, import, finding);
  const std::string freed_at = words::at(" at ", freed.stack);
  add_sentence(finding, import.close == nullptr
                            ? fmt::format("{} called cuMemFree{}; {} never called cuIpcCloseMemHandle.", exporter,
                                          freed_at, importer)
                            : fmt::format("{} called cuMemFree{} before {} called cuIpcCloseMemHandle{}.", exporter,
                                          freed_at, importer, words::at(" at ", import.close->stack)));
  if (freed.ended_ns == 0) add_sentence(finding, fmt::format("{} has not come back from it.", exporter));
  return finding;
}

Finding describe_last_use(const Evidence& evidence, const Import& import, std::uint64_t end_ns) {
  const model::ProcessId exporter = import.of->call->process;
  const std::string opened = words::at(", opened at ", import.open->stack);
  Finding finding = begin(evidence, import);
  finding.summary =
      fmt::format("{} used device memory of {}{} after that process had ended", evidence.name(import.open->process),
                  evidence.name(exporter), opened.empty() ? opened : opened + ",");
  tell_open(evidence, import, finding);
  add_sentence(finding, fmt::format("{} ended while the memory was open; {} later {} copied from or to it.",
                                    evidence.name(exporter), milliseconds_between(end_ns, import.open->used_ns),
                                    evidence.name(import.open->process)));
  add_sentence(finding, describe_end(evidence.process(exporter)));
  return finding;
}

void add_rest(Finding& finding) {
  add_sentence(
      finding,
      "A handle of cuIpcGetMemHandle opens the exporter's own allocation. The driver does not count the "
      "processes that have this memory open: cuMemFree frees the memory, and so does the end of the exporter.");
  finding.fixes.push_back(
      {"Let each importer close the memory (cuIpcCloseMemHandle) and tell the exporter. The exporter may free it, or "
       "end, when all importers have closed it.",
       true});
  finding.fixes.push_back(
      {"Or share memory that the driver counts: cuMemCreate with a POSIX descriptor, or forksight::ipc_cuda, which "
       "refuses to free memory that is open and says which process has it open."});
}

}  // namespace

void cuda_ipc_exporter_gone(const Evidence& evidence, FindingList& findings) {
  if (evidence.model().cuda_ipc.empty()) return;
  const Sharing sharing(evidence);
  for (const Import& import : sharing.imports()) {
    const Export* const of = import.of;
    const model::ProcessId importer = import.open->process;
    if (of == nullptr || of->call->process == importer) continue;
    // If records of a process are missing, the memory may have been closed earlier without a record.
    if (!sharing.is_whole(importer) || !sharing.is_whole(of->call->process)) continue;
    if (of->freed != nullptr) {
      const std::uint64_t at_ns = of->freed->began_ns;
      if (!cuda::is_open_at(import, at_ns) || !sharing.was_alive_after(importer, at_ns)) continue;
      findings.push_back(describe_free(evidence, import));
    } else {
      const std::uint64_t end_ns = sharing.end_of(of->call->process);
      if (end_ns == 0 || !cuda::is_open_at(import, end_ns) || import.open->used_ns <= end_ns) continue;
      findings.push_back(describe_last_use(evidence, import, end_ns));
    }
    add_rest(findings.back());
  }
}

}  // namespace forksight::rules
