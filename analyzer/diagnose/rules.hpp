// The list of rules, which is generated from the table rules.def.
#pragma once

#include <span>
#include <vector>

#include "diagnose/finding_list.hpp"

namespace forksight {

class Evidence;

struct Rule {
  const char* slug;
  const char* title;
  // Appends what the rule finds. Throws TooManyFindings if it finds too much, and RuleTookTooLong if it has used up its
  // time. Null for topics, which are always part of
  // another finding.
  void (*evaluate)(const Evidence& evidence, FindingList& findings);
};

std::span<const Rule> all_rules();

namespace rules {
#define FORKSIGHT_RULE(function, slug, title) void function(const Evidence& evidence, FindingList& findings);
#define FORKSIGHT_TOPIC(slug, title)
#include "diagnose/rules.def"
}  // namespace rules

}  // namespace forksight
