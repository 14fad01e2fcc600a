#include "diagnose/finding_list.hpp"

#include <algorithm>
#include <utility>

#include "diagnose/fingerprint.hpp"
#include "files/budgets.hpp"
#include "model/stack_bytes.hpp"

namespace forksight {

namespace {

using model::bytes_of;

std::size_t victim_bytes(const std::vector<Victim>& victims) {
  std::size_t bytes = victims.capacity() * sizeof(Victim);
  for (const Victim& victim : victims) bytes += bytes_of(victim.via);
  return bytes;
}

std::size_t bytes_of(const Finding& finding) {
  std::size_t bytes = sizeof finding + bytes_of(finding.rule) + bytes_of(finding.summary) +
                      bytes_of(finding.thread_name) + bytes_of(finding.stack) + bytes_of(finding.culprit.stack) +
                      bytes_of(finding.culprit.name) + bytes_of(finding.culprit.library) +
                      finding.chain.capacity() * sizeof(std::string) + finding.fixes.capacity() * sizeof(Fix) +
                      victim_bytes(finding.victims) + finding.processes.capacity() * sizeof(model::ProcessId);
  if (finding.culprit.holder) {
    const Holder& holder = *finding.culprit.holder;
    bytes += bytes_of(holder.name) + bytes_of(holder.library) + bytes_of(holder.start_routine) + bytes_of(holder.owner);
  }
  if (finding.fork) bytes += bytes_of(finding.fork->stack);
  for (const std::string& sentence : finding.chain) bytes += bytes_of(sentence);
  for (const Fix& fix : finding.fixes) bytes += bytes_of(fix.text);
  return bytes;
}

// Frees the memory. An assignment of an empty value would keep it.
template <class T>
void release(T& value) {
  T().swap(value);
}

void drop_texts_and_stacks(Finding& finding) {
  release(finding.summary);
  release(finding.thread_name);
  release(finding.stack.frames);
  release(finding.chain);
  release(finding.fixes);
  release(finding.culprit.name);
  release(finding.culprit.library);
  release(finding.culprit.stack.frames);
  finding.culprit.holder.reset();
  if (finding.fork) release(finding.fork->stack.frames);
}

}  // namespace

std::size_t FindingList::bytes_left() const {
  return files::kMaxFindingBytes - std::min(bytes_, files::kMaxFindingBytes);
}

void FindingList::begin_rule() { most_ = bytes_ + bytes_left() / 2; }

FindingList::Key FindingList::key_of(const Finding& finding) const {
  const bool has_timer = std::ranges::any_of(
      finding.processes, [&](model::ProcessId id) { return model_.processes[id].may_be_timed_out; });
  return {finding.fingerprint, finding.outcome, finding.harm, finding.cause, finding.may_be_intended, has_timer};
}

void FindingList::push_back(Finding finding) {
  if (clock_ != nullptr) clock_->check();
  finding.fingerprint = fingerprint(model_, finding);
  Key key = key_of(finding);
  const auto known = known_.find(key);
  if (known != known_.end()) drop_texts_and_stacks(finding);
  const std::size_t bytes = bytes_of(finding);
  if (bytes_ + bytes > most_) throw TooManyFindings();
  bytes_ += bytes;
  equal_to_.push_back(known == known_.end() ? std::nullopt : std::optional(known->second));
  if (known == known_.end()) known_.emplace(std::move(key), all_.size());
  all_.push_back(std::move(finding));
}

std::vector<Finding> FindingList::take_merged() {
  for (std::size_t index = 0; index < all_.size(); ++index) {
    if (equal_to_[index]) merge(all_[*equal_to_[index]], all_[index]);
  }
  std::vector<Finding> merged;
  for (std::size_t index = 0; index < all_.size(); ++index) {
    if (!equal_to_[index]) merged.push_back(std::move(all_[index]));
  }
  all_.clear();
  return merged;
}

void merge(Finding& finding, const Finding& more) {
  finding.count += more.count;
  finding.processes.insert(finding.processes.end(), more.processes.begin(), more.processes.end());
  finding.victims.insert(finding.victims.end(), more.victims.begin(), more.victims.end());
  finding.more_victims += more.more_victims;
}

}  // namespace forksight
