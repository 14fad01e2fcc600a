// A process opens a handle that it already has open. CUDA refuses this if the process opens the handle in a second
// context. Drivers before CUDA 11 also refuse it in the same context.
#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

#include "diagnose/cuda.hpp"
#include "diagnose/cuda_ipc.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void cuda_ipc_opened_twice(const Evidence& evidence, FindingList& findings) {
  if (evidence.model().cuda_ipc.empty()) return;
  const cuda::Sharing sharing(evidence);
  std::set<std::pair<model::ProcessId, std::uint64_t>> told;
  for (const cuda::IpcCall* call : sharing.refused()) {
    const cuda::Import* const known = sharing.find_open(call->process, call->handle, call->began_ns);
    if (known == nullptr || !sharing.is_whole(call->process)) continue;
    if (known->close != nullptr && known->close->began_ns < call->ended_ns) continue;
    if (!told.emplace(call->process, call->handle).second) continue;
    Finding finding = cuda::begin_finding("cuda-ipc-opened-twice", *call);
    finding.harm = Certainty::kProven;
    finding.cause = Certainty::kProven;
    finding.outcome = Outcome::kError;
    finding.culprit.kind = CulpritKind::kMemory;
    finding.culprit.name = "device memory of another process";
    if (known->of != nullptr) finding.culprit = cuda::describe_memory(evidence, *known->of);
    finding.culprit.address = known->open->address;
    finding.culprit.stack = known->open->stack;
    const std::string opened = words::at(" at ", known->open->stack);
    finding.summary =
        fmt::format("{} called cuIpcOpenMemHandle{} and got {}: it already has that memory open, by an earlier call{}",
                    evidence.name(call->process), words::at(" at ", call->stack), cuda::answer(call->result), opened);
    add_sentence(finding,
                 fmt::format("{} opened the handle{}, and had not closed it.", evidence.name(call->process), opened));
    add_sentence(finding,
                 "The memory that one process exports from one device can be open in only one context of another "
                 "process; drivers before CUDA 11 do not count how often that context opens it.");
    add_sentence(finding, describe_end(evidence.process(call->process)));
    finding.fixes.push_back(
        {"Keep a table of what is open, by handle, with a count: open once, close with the last user.", true});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
