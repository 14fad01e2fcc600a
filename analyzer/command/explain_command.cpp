#include "command/explain_command.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/nearest.hpp"
#include "command/output.hpp"
#include "command/pager.hpp"
#include "command/pages.hpp"
#include "command/symptoms.hpp"
#include "diagnose/rules.hpp"
#include "render/markdown.hpp"
#include "render/page.hpp"
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

constexpr std::size_t kNarrowList = 60;  // a narrower page has no second column

std::string list_all() {
  const render::TextOptions options = render::options_for(STDOUT_FILENO);
  render::Page text(options);
  text.paragraph(render::Style::kPlain, "What you see:");
  text.blank();
  for (const Page& page : symptom_pages()) {
    for (const Symptom& symptom : read_symptoms(page.text)) text.paragraph(render::Style::kPlain, symptom.title, 2);
  }
  text.blank();
  text.paragraph(render::Style::kPlain, "What it is:");
  text.blank();
  std::size_t longest = 0;
  for (const Rule& rule : all_rules()) longest = std::max(longest, std::string_view(rule.slug).size());
  const std::size_t column = options.columns.value_or(kNarrowList) < kNarrowList ? 6 : longest + 4;
  for (const Rule& rule : all_rules()) text.entry(rule.slug, rule.title, column);
  text.blank();
  text.paragraph(render::Style::kPlain,
                 "forksight explain SLUG explains one hazard in full; forksight explain --search WORDS finds hazards "
                 "by what you see.");
  return text.take();
}

std::string lay_out(std::string_view page) { return render::render_markdown(page, render::options_for(STDOUT_FILENO)); }

std::string list_titles(const std::vector<Symptom>& symptoms, std::size_t first) {
  constexpr std::size_t kMostTitles = 6;
  render::Page text(render::options_for(STDOUT_FILENO));
  for (std::size_t i = first; i < std::min(symptoms.size(), first + kMostTitles); ++i)
    text.paragraph(render::Style::kPlain, symptoms[i].title, 2);
  return text.take();
}

std::string list_hazards(const std::vector<std::string>& slugs) {
  constexpr std::size_t kMostHazards = 8;
  render::Page text(render::options_for(STDOUT_FILENO));
  for (std::size_t i = 0; i < std::min(slugs.size(), kMostHazards); ++i) {
    const Rule* const rule = find_rule(slugs[i]);
    const std::string line = rule == nullptr ? slugs[i] : fmt::format("{}: {}", rule->slug, rule->title);
    text.paragraph(render::Style::kPlain, line, 2);
  }
  return text.take();
}

// Lays out a sentence that stands above a list or a page.
std::string say(const std::string& sentence) {
  render::Page text(render::options_for(STDOUT_FILENO));
  text.paragraph(render::Style::kPlain, sentence);
  return text.take();
}

// Returns the text of the best section of docs/symptoms.md, the titles of other sections, and the hazards.
std::string tell(const Found& found) {
  std::vector<std::string> parts;
  if (!found.unknown.empty()) {
    parts.push_back(
        say(fmt::format("No page has: {}. These pages have the other words.", fmt::join(found.unknown, ", "))));
  }
  for (const auto& [word, meant] : found.corrected)
    parts.push_back(say(fmt::format("No page has \"{}\". These pages have \"{}\".", word, meant)));
  const std::size_t whole = found.has_best ? 1 : 0;  // how many sections are printed whole
  if (whole != 0) {
    const Symptom& best = found.symptoms.front();
    parts.push_back(lay_out(fmt::format("## {}\n\n{}\n", best.title, best.text)));
  }
  if (const std::string titles = list_titles(found.symptoms, whole); !titles.empty()) {
    const char* const what = whole != 0 ? "Also" : "What you see";
    parts.push_back(say(fmt::format("{} (forksight explain --search TITLE):", what)) + "\n" + titles);
  }
  if (const std::string hazards = list_hazards(found.hazards); !hazards.empty())
    parts.push_back(say("Hazards whose pages have these words (forksight explain SLUG):") + "\n" + hazards);
  if (!found.has_best) {
    parts.push_back(
        say("If you know the process: forksight why PID shows what it and its children wait for, and who could end the "
            "wait."));
  }
  return fmt::format("{}", fmt::join(parts, "\n"));
}

ExitStatus search(const std::vector<std::string>& words) {
  const Found found = search_pages(words);
  if (found.symptoms.empty() && found.hazards.empty()) {
    say_error(fmt::format(
        "{}: no page has any of these words; `forksight explain` lists all pages, `forksight explain --search "
        "idle` says what to do if nothing says why a process hangs, and `forksight why PID` shows what the "
        "process waits for",
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
  if (!nearest.empty()) {
    say_error(fmt::format("{}: no such hazard; did you mean {}?", slug, fmt::join(nearest, " or ")));
  } else if (!search_pages({slug}).symptoms.empty()) {
    say_error(
        fmt::format("{}: no such hazard; `forksight explain --search {}` finds it among the symptoms", slug, slug));
  } else {
    say_error(fmt::format("{}: no such hazard; `forksight explain` lists them", slug));
  }
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
