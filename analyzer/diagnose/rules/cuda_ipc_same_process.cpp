// A process opens a handle that it exported itself, and CUDA refuses this. The process has the memory already, so it
// need not open the handle.
#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

#include "diagnose/cuda.hpp"
#include "diagnose/cuda_ipc.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void cuda_ipc_same_process(const Evidence& evidence, FindingList& findings) {
  if (evidence.model().cuda_ipc.empty()) return;
  const cuda::Sharing sharing(evidence);
  std::set<std::pair<model::ProcessId, std::uint64_t>> told;
  for (const cuda::IpcCall* call : sharing.refused()) {
    const cuda::Export* const of = sharing.find_export(*call);
    if (of == nullptr || of->call->process != call->process) continue;
    if (!told.emplace(call->process, call->handle).second) continue;
    Finding finding = cuda::begin_finding("cuda-ipc-same-process", *call);
    finding.harm = Certainty::kProven;
    finding.cause = Certainty::kProven;
    finding.outcome = Outcome::kError;
    finding.culprit = cuda::describe_memory(evidence, *of);
    finding.culprit.holder->alive = true;
    finding.culprit.name = "device memory of its own";
    const std::string exported = words::at(" at ", of->call->stack);
    finding.summary =
        fmt::format("{} called cuIpcOpenMemHandle{} and got {}: it exported that memory itself{}",
                    evidence.name(call->process), words::at(" at ", call->stack), cuda::answer(call->result), exported);
    add_sentence(finding, fmt::format("{} got the handle of its memory at {:#x} from cuIpcGetMemHandle{}.",
                                      evidence.name(call->process), of->call->address, exported));
    add_sentence(finding, "A handle can be opened by other processes only.");
    add_sentence(finding, describe_end(evidence.process(call->process)));
    finding.fixes.push_back(
        {"Use the pointer that the process has: send the exporter's pid along with the handle, and "
         "compare it with getpid().",
         true});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
