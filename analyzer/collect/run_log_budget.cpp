#include "collect/run_log_budget.hpp"

#include <algorithm>

#include "files/budgets.hpp"

namespace forksight::collect {

RunLogCosts largest_run_log() {
  return {files::kMaxRunLogBytes, files::kMaxRunLogItems, files::kMaxRunLogRows, files::kMaxRunLogWaits,
          files::kMaxRunLogProcesses};
}

RunLogBudget::RunLogBudget(std::size_t files) : open_(files), own_(largest_run_log()), left_(largest_run_log()) {
  for (std::size_t& own : own_) own = own / 2 / std::max<std::size_t>(files, 1);
}

RunLogCosts RunLogBudget::most() const {
  if (open_ <= 1) return left_;
  RunLogCosts most = own_;
  for (std::size_t i = 0; i < most.size(); ++i) {
    const std::size_t of_others = own_[i] * open_;
    most[i] = std::min(left_[i], own_[i] + (left_[i] - std::min(left_[i], of_others)) / 2);
  }
  return most;
}

void RunLogBudget::count(const RunLogCosts& used) {
  for (std::size_t i = 0; i < used.size(); ++i) left_[i] -= std::min(left_[i], used[i]);
  --open_;
}

}  // namespace forksight::collect
