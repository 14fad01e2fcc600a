#include "command/explain_command.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <sstream>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/nearest.hpp"
#include "command/output.hpp"
#include "command/pager.hpp"
#include "command/pages.hpp"
#include "command/symptoms.hpp"
#include "diagnose/rules.hpp"
#include "render/markdown.hpp"
#include "render/terminal.hpp"

namespace forksight {
namespace {

constexpr char kExplainExamples[] = R"(Examples:
  forksight explain                      what users see, and all hazards that forksight knows, a line each
  forksight explain lost-openmp-pool     one hazard in full: what happens, how to recognise it, how to fix it
  forksight explain --search gunicorn timeout
                                         what it usually is, and what to run; words in any order

)";

constexpr char kExplainFooter[] = R"(
Exit status: 0 the page was found and printed, 2 invalid command line, or there is no such page.)";

const Rule* find_rule(std::string_view slug) {
  const auto rule = std::ranges::find_if(all_rules(), [&](const Rule& one) { return slug == one.slug; });
  return rule == all_rules().end() ? nullptr : &*rule;
}

std::string list_all() {
  std::string text = "What you see:\n\n";
  for (const Page& page : symptom_pages()) {
    for (const Symptom& symptom : read_symptoms(page.text)) text += fmt::format("  {}\n", symptom.title);
  }
  text += "\nWhat it is:\n\n";
  std::size_t longest = 0;
  for (const Rule& rule : all_rules()) longest = std::max(longest, std::string_view(rule.slug).size());
  for (const Rule& rule : all_rules()) text += fmt::format("  {:{}}  {}\n", rule.slug, longest, rule.title);
  return text +
         "\nforksight explain SLUG explains one hazard in full; forksight explain --search WORDS finds hazards by what "
         "you see.\n";
}

std::string lay_out(std::string_view page) { return render::render_markdown(page, render::options_for(STDOUT_FILENO)); }

// Returns the text of the best section of docs/symptoms.md, the titles of the other sections, and the hazards.
std::string tell(const Found& found) {
  constexpr std::size_t kMostInFull = 1;
  constexpr std::size_t kMostHazards = 8;
  std::string text;
  for (std::size_t i = 0; i < found.symptoms.size(); ++i) {
    if (i == kMostInFull) text += "Also:\n\n";
    text += i < kMostInFull ? fmt::format("{}\n", lay_out(fmt::format("## {}\n\n{}\n", found.symptoms[i].title, found.symptoms[i].text)))
                            : fmt::format("  {}\n", found.symptoms[i].title);
  }
  if (found.symptoms.size() > kMostInFull) text += "\n";
  if (!found.hazards.empty()) text += "Hazards whose pages have these words (forksight explain SLUG):\n\n";
  for (std::size_t i = 0; i < std::min(found.hazards.size(), kMostHazards); ++i) {
    const Rule* const rule = find_rule(found.hazards[i]);
    text +=
        rule == nullptr ? fmt::format("  {}\n", found.hazards[i]) : fmt::format("  {}: {}\n", rule->slug, rule->title);
  }
  if (found.hazards.size() > kMostHazards) text += fmt::format("  and {} more\n", found.hazards.size() - kMostHazards);
  return text;
}

// Finds the pages that contain all arguments. If there is no such page, splits each argument into words, for example
// "a b" into two words, and finds the pages that contain all of these words.
Found find_pages(const std::vector<std::string>& words) {
  Found found = search_pages(words);
  if (!found.symptoms.empty() || !found.hazards.empty()) return found;
  std::vector<std::string> parts;
  for (const std::string& word : words) {
    std::istringstream stream(word);
    for (std::string part; stream >> part;) parts.push_back(part);
  }
  return search_pages(parts);
}

ExitStatus search(const std::vector<std::string>& words) {
  const Found found = find_pages(words);
  if (found.symptoms.empty() && found.hazards.empty()) {
    say_error(fmt::format("{}: no page has all of these words; try fewer, or `forksight explain` for the list",
                          fmt::join(words, " ")));
    return ExitStatus::kUsage;
  }
  return write_paged(tell(found)) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable;
}

ExitStatus explain(const std::string& slug) {
  if (slug.empty()) return write_paged(list_all()) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable;
  for (const Page& page : hazard_pages()) {
    if (slug == page.name) return write_paged(lay_out(page.text)) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable;
  }
  const std::vector<std::string> nearest = find_nearest_slugs(slug);
  say_error(nearest.empty() ? fmt::format("{}: no such hazard; `forksight explain` lists them", slug)
                            : fmt::format("{}: no such hazard; did you mean {}?", slug, fmt::join(nearest, " or ")));
  return ExitStatus::kUsage;
}

}  // namespace

std::vector<std::string> find_nearest_slugs(std::string_view slug) {
  std::vector<std::string> slugs;
  for (const Rule& rule : all_rules()) slugs.emplace_back(rule.slug);
  return find_nearest(slug, slugs);
}

void add_explain_command(CLI::App& app, int& status) {
  auto slug = std::make_shared<std::string>();
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* const verb =
      app.add_subcommand("explain", "Explain a hazard in full: what happens, how to recognise it, how to fix it");
  verb->formatter(std::make_shared<ExampleFormatter>("forksight explain [SLUG | --search WORD...]", kExplainExamples));
  verb->footer(kExplainFooter);
  CLI::Option* const name =
      verb->add_option("SLUG", *slug, "The name of the hazard, as in reports")->type_name("")->group("What to explain");
  verb->add_option("--search", *words, "What you see: words of an error message, a framework, a call")
      ->type_name("WORD...")
      ->group("What to explain")
      ->excludes(name);
  verb->callback([slug, words, &status] { status = as_int(words->empty() ? explain(*slug) : search(*words)); });
}

}  // namespace forksight
