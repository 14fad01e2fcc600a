// A process (the importer) died while it had memory of another process (the exporter) open. The exporter never freed
// this memory, although it frees memory that importers have closed. So the exporter probably waits for a message that
// nobody will send. The driver has removed the importer's mapping, but the memory stays allocated until the exporter
// ends. Only what the exporter did with other memory suggests that it waits. So this finding is never more than likely.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "diagnose/cuda_ipc.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using cuda::Export;
using cuda::Import;
using cuda::Sharing;

// Counts allocations of this exporter that were freed after an importer had closed them. An allocation counts once,
// even if several importers closed it.
std::size_t count_given_back(const Sharing& sharing, model::ProcessId exporter) {
  std::set<const Export*> given_back;
  for (const Import& import : sharing.imports()) {
    if (import.of == nullptr || import.of->call->process != exporter || import.of->freed == nullptr) continue;
    if (import.close != nullptr && import.close->began_ns < import.of->freed->began_ns) given_back.insert(import.of);
  }
  return given_back.size();
}

Finding describe(const Evidence& evidence, const Import& import, std::size_t given_back) {
  const model::ProcessId exporter = import.of->call->process;
  const model::Process& dead = evidence.process(import.open->process);
  const std::string exported = words::at(" at ", import.of->call->stack);
  Finding finding = cuda::begin_finding("cuda-ipc-limbo", *import.of->call);
  finding.harm = Certainty::kLikely;
  finding.cause = Certainty::kLikely;
  finding.outcome = Outcome::kError;
  finding.culprit.kind = CulpritKind::kMemory;
  finding.culprit.name = "device memory that a dead process had open";
  finding.culprit.stack = import.open->stack;
  Holder holder;
  holder.pid = dead.pid;
  holder.tid = import.open->tid;
  finding.culprit.holder = std::move(holder);
  finding.summary = fmt::format("device memory that {} exported{} has not been freed: {} had it open, and died",
                                evidence.name(exporter), exported, evidence.name(import.open->process));
  add_sentence(finding, fmt::format("{} opened it{}, and ended without cuIpcCloseMemHandle or exit().",
                                    evidence.name(import.open->process), words::at(" at ", import.open->stack)));
  add_sentence(
      finding,
      fmt::format("{} went on and did not free this memory. But it freed other memory that importers had closed: {}.",
                  evidence.name(exporter), words::count(given_back, "allocation", "allocations")));
  add_sentence(finding,
               "The driver removed the mapping of the dead process, but it tells nobody. A process that waits for a "
               "message of the dead one, or for a counter in shared memory, waits for ever.");
  finding.fixes.push_back(
      {"Watch the importers (pidfd_open, or a pipe to each of them). When an importer dies, act as if it had closed "
       "its memory.",
       true});
  finding.fixes.push_back(
      {"forksight::ipc_cuda does this: when a reader dies, its buffers go to another reader, or become free."});
  return finding;
}

}  // namespace

void cuda_ipc_limbo(const Evidence& evidence, FindingList& findings) {
  if (evidence.model().cuda_ipc.empty()) return;
  const Sharing sharing(evidence);
  std::set<const Export*> told;
  for (const Import& import : sharing.imports()) {
    const Export* const of = import.of;
    if (of == nullptr || of->freed != nullptr || import.close != nullptr) continue;
    const model::ProcessId importer = import.open->process;
    const model::ProcessId exporter = of->call->process;
    const std::uint64_t seen_ended_ns = evidence.process(importer).seen_ended_ns;
    if (importer == exporter || seen_ended_ns == 0 || sharing.ended_by_itself(importer)) continue;
    if (!sharing.is_whole(importer) || !sharing.is_whole(exporter)) continue;
    const std::size_t given_back = count_given_back(sharing, exporter);
    // The finding needs an exporter that had the chance to free the memory. So the exporter must have made a recorded
    // call, or ended by itself, after the importer had opened the memory. It is not known exactly when the importer
    // died. But if the exporter ended before the importer, the importer's death is not the reason.
    if (given_back == 0 || !sharing.was_alive_after(exporter, import.open->ended_ns)) continue;
    const std::uint64_t end_ns = sharing.end_of(exporter);
    if (end_ns != 0 && sharing.was_alive_after(importer, end_ns)) continue;
    // If another living process has the memory open, the exporter is right not to free it.
    const bool is_shared = std::ranges::any_of(sharing.imports(), [&](const Import& other) {
      return other.of == of && other.close == nullptr && other.open->process != importer &&
             evidence.process(other.open->process).seen_ended_ns == 0;
    });
    if (!is_shared && told.insert(of).second) findings.push_back(describe(evidence, import, given_back));
  }
}

}  // namespace forksight::rules
