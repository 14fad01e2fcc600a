#include "diagnose/finding_list.hpp"

#include <algorithm>
#include <string>

#include "files/budgets.hpp"
#include "model/stack_bytes.hpp"

namespace forksight {

namespace {

using model::bytes_of;

std::size_t bytes_of(const Finding& finding) {
  std::size_t bytes = sizeof finding + bytes_of(finding.summary) + bytes_of(finding.stack) +
                      bytes_of(finding.culprit.stack) + bytes_of(finding.culprit.name) +
                      finding.chain.capacity() * sizeof(std::string) + finding.fixes.capacity() * sizeof(Fix) +
                      finding.victims.capacity() * sizeof(Victim) +
                      finding.processes.capacity() * sizeof(model::ProcessId);
  if (finding.fork) bytes += bytes_of(finding.fork->stack);
  for (const std::string& sentence : finding.chain) bytes += bytes_of(sentence);
  for (const Fix& fix : finding.fixes) bytes += bytes_of(fix.text);
  return bytes;
}

}  // namespace

void FindingList::begin_rule() {
  const std::size_t left = files::kMaxFindingBytes - std::min(bytes_, files::kMaxFindingBytes);
  most_ = bytes_ + left / 2;
}

void FindingList::push_back(Finding finding) {
  const std::size_t bytes = bytes_of(finding);
  if (bytes_ + bytes > most_) throw TooManyFindings();
  bytes_ += bytes;
  all_.push_back(std::move(finding));
}

}  // namespace forksight
