// Checks may_find_with_names() on every model of these tests. Code that has looked up no names yet calls this function
// to decide whether to look up the names. So the function must return true for each model that gives findings once it
// has names. The check first removes the names from the model. The linker option --wrap replaces diagnose() by
// wrapped_diagnose() in all tests.
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
