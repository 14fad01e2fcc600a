#include "diagnose/rules.hpp"

namespace forksight {

namespace {

constexpr Rule kRules[] = {
#define FORKSIGHT_RULE(function, slug, title) {slug, title, rules::function},
#define FORKSIGHT_TOPIC(slug, title) {slug, title, nullptr},
#include "diagnose/rules.def"
};

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

}  // namespace forksight
