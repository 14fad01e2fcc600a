// Every model of these tests is judged a second time without its names. What is found with names must not be missed by
// code that first asks whether names are worth looking up (may_find_with_names). The linker puts this function in the
// place of diagnose() (--wrap), so no test can forget it.
#include <gtest/gtest.h>

#include "diagnose/diagnose.hpp"
#include "support/nameless.hpp"

namespace forksight {

std::vector<Finding> real_diagnose(const model::Model& model) asm("__real__ZN9forksight8diagnoseERKNS_5model5ModelE");
std::vector<Finding> wrapped_diagnose(const model::Model& model) asm(
    "__wrap__ZN9forksight8diagnoseERKNS_5model5ModelE");

std::vector<Finding> wrapped_diagnose(const model::Model& model) {
  std::vector<Finding> findings = real_diagnose(model);
  if (!findings.empty()) {
    EXPECT_TRUE(may_find_with_names(test::without_names(model))) << findings.front().summary;
  }
  return findings;
}

}  // namespace forksight
