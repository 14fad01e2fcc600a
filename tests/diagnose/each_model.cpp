// Makes two checks on every model of these tests. The linker option --wrap replaces diagnose() by wrapped_diagnose() in
// all tests.
// - Code that has looked up no names yet calls may_find_with_names() to decide whether to look up the names. So this
//   function must return true for each model that gives findings once it has names. The check first removes the names
//   from the model.
// - Processes that have nothing to do with each other do not change each other's findings. So a model that contains the
//   same processes several times gives each finding several times. With FORKSIGHT_COPIES=5000, the check also shows
//   that no rule takes more than some seconds of processor time for thousands of hangs.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "diagnose/diagnose.hpp"
#include "support/copies.hpp"
#include "support/nameless.hpp"

namespace forksight {

std::vector<Finding> real_diagnose(const model::Model& model) asm("__real__ZN9forksight8diagnoseERKNS_5model5ModelE");
std::vector<Finding> wrapped_diagnose(const model::Model& model) asm(
    "__wrap__ZN9forksight8diagnoseERKNS_5model5ModelE");

namespace {

constexpr std::size_t kLargestModel = 1000;  // processes; the tests of limits make larger models
constexpr double kMostSeconds = 5;

std::size_t number_of_copies() {
  const char* const number = std::getenv("FORKSIGHT_COPIES");
  return number == nullptr ? 3 : std::strtoul(number, nullptr, 10);
}

double processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::map<std::string, std::uint64_t> count_by_rule(const std::vector<Finding>& findings) {
  std::map<std::string, std::uint64_t> counts;
  for (const Finding& finding : findings) counts[finding.rule] += finding.count;
  return counts;
}

void check_copies(const model::Model& model, const std::vector<Finding>& findings) {
  const bool is_large = model.processes.size() + model.touches.size() + model.lock_orders.size() > kLargestModel;
  if (model.processes.empty() || is_large) return;
  const std::size_t copies = number_of_copies();
  std::map<std::string, std::uint64_t> expected = count_by_rule(findings);
  for (auto& [rule, count] : expected) count *= copies;
  const model::Model many = test::copies_of(model, copies);
  std::vector<std::string> limits;
  const double begin = processor_time();
  const std::vector<Finding> found = diagnose(many, limits);
  EXPECT_LT(processor_time() - begin, kMostSeconds);
  std::vector<std::string> limits_of_one;
  diagnose(model, limits_of_one);
  EXPECT_EQ(limits.empty(), limits_of_one.empty());
  EXPECT_EQ(count_by_rule(found), expected);
}

}  // namespace

std::vector<Finding> wrapped_diagnose(const model::Model& model) {
  std::vector<Finding> findings = real_diagnose(model);
  if (!findings.empty()) {
    EXPECT_TRUE(may_find_with_names(test::without_names(model))) << findings.front().summary;
  }
  check_copies(model, findings);
  return findings;
}

}  // namespace forksight
