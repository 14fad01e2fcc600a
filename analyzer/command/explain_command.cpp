#include "command/explain_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/hazard_pages.hpp"
#include "command/output.hpp"
#include "diagnose/rules.hpp"

namespace forksight {
namespace {

constexpr char kExamples[] = R"(Examples:
  forksight explain                      all hazards that forksight knows, a line each
  forksight explain lost-openmp-pool     one in full: what happens, how to recognise it, how to fix it

)";

constexpr std::size_t kMostSuggestions = 3;

// Insertions, deletions and replacements that turn one word into the other.
std::size_t edit_distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string list_all() {
  std::size_t longest = 0;
  for (const Rule& rule : all_rules()) longest = std::max(longest, std::string_view(rule.slug).size());
  std::string text;
  for (const Rule& rule : all_rules()) text += fmt::format("{:{}}  {}\n", rule.slug, longest, rule.title);
  return text + "\nforksight explain SLUG tells one in full.\n";
}

ExitStatus explain(const std::string& slug) {
  if (slug.empty()) return write_out(list_all()) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable;
  for (const HazardPage& page : hazard_pages()) {
    if (slug == page.slug) return write_out(page.text) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable;
  }
  const std::vector<std::string> nearest = find_nearest_slugs(slug);
  say_error(nearest.empty() ? fmt::format("{}: no such hazard; `forksight explain` lists them", slug)
                            : fmt::format("{}: no such hazard; did you mean {}?", slug, fmt::join(nearest, " or ")));
  return ExitStatus::kUsage;
}

}  // namespace

std::vector<std::string> find_nearest_slugs(std::string_view slug) {
  constexpr std::size_t kLongest = 64;  // nobody meant something by more than this
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const Rule& rule : all_rules()) {
    const std::string_view known = rule.slug;
    const bool is_part = slug.size() >= 3 && known.find(slug) != std::string_view::npos;
    const std::size_t distance = is_part ? 0 : edit_distance(slug.substr(0, kLongest), known);
    if (distance <= std::max<std::size_t>(2, known.size() / 3)) ranked.emplace_back(distance, rule.slug);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < ranked.size() && i < kMostSuggestions; ++i) nearest.push_back(ranked[i].second);
  return nearest;
}

void add_explain_command(CLI::App& app, int& status) {
  auto slug = std::make_shared<std::string>();
  CLI::App* const verb = app.add_subcommand("explain", "A hazard in full: what, how to recognise, how to fix");
  verb->formatter(std::make_shared<ExampleFormatter>("forksight explain [SLUG]", kExamples));
  verb->add_option("SLUG", *slug, "Its name, as reports have it")->type_name("")->group("What to explain");
  verb->callback([slug, &status] { status = as_int(explain(*slug)); });
}

}  // namespace forksight
