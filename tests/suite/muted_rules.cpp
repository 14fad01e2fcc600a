// Has the same list of rules as analyzer/diagnose/rules.cpp, but the rule that FORKSIGHT_MUTED_RULE names finds
// nothing. Only forksight_mutant, a program for tests, contains this file instead of rules.cpp.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "diagnose/rules.hpp"

namespace forksight {
namespace {

auto make_rules() {
  std::array rules = {
#define FORKSIGHT_RULE(function, slug, title) Rule{slug, title, rules::function},
#define FORKSIGHT_TOPIC(slug, title) Rule{slug, title, nullptr},
#include "diagnose/rules.def"
  };
  const char* const muted = std::getenv("FORKSIGHT_MUTED_RULE");
  if (muted == nullptr) return rules;
  bool is_known = false;
  for (Rule& rule : rules) {
    if (std::string_view(rule.slug) != muted || rule.evaluate == nullptr) continue;
    rule.evaluate = [](const Evidence&, FindingList&) {};
    is_known = true;
  }
  if (!is_known) {
    std::fprintf(stderr, "FORKSIGHT_MUTED_RULE=%s: no such rule\n", muted);
    std::abort();
  }
  return rules;
}

}  // namespace

std::span<const Rule> all_rules() {
  static const auto kRules = make_rules();
  return kRules;
}

}  // namespace forksight
