#include "command/show_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <utility>
#include <vector>

#include "command/output.hpp"
#include "diagnose/diagnose.hpp"
#include "files/budgets.hpp"
#include "files/cut_files.hpp"
#include "render/json.hpp"
#include "render/page.hpp"
#include "render/terminal.hpp"
#include "render/text.hpp"
#include "render/waits.hpp"

namespace forksight {
namespace {

std::string make_text(const model::Model& model, const std::vector<Finding>& findings, const ReportStyle& style,
                      const ReportContents& contents) {
  render::TextOptions options = render::options_for(STDOUT_FILENO);
  options.full = style.full;
  const bool is_all = contents.waits == ShownWaits::kAll;
  std::vector<std::string> parts;
  parts.push_back(render::render_text(model, findings, options, find_unexplained(model, findings)));
  parts.push_back(render::render_waits(
      model, is_all ? render::find_without_finding(model, findings) : find_unexplained_processes(model, findings),
      options));
  const bool shows_waits = is_all && !parts.back().empty();
  if (findings.empty() && shows_waits && !contents.next.empty()) {
    render::Page next(options);
    next.paragraph(render::Style::kPlain, contents.next);
    parts.push_back(next.take());
  }
  if (!contents.locals.empty())
    parts.push_back(
        render::render_list("Locals of the innermost frames of Python, by name:", contents.locals, options));
  parts.push_back(render::render_limits(model.limits, options));
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace

ExitStatus show_report(model::Model& model, const ReportStyle& style, const ReportContents& contents) {
  std::vector<std::string> limits;
  auto [findings, has_all_rules] = diagnose_within(files::kLongestRules, model, limits);
  contents.outside.add_to(model, findings);
  if (files::has_read_lost_page()) {
    model.limits.push_back(
        "a program or library became shorter while forksight read it: names and lines may be missing");
  }
  for (std::string& limit : limits) model.limits.push_back(std::move(limit));
  bool is_written = false;
  if (style.format == "json") {
    for (std::string& sentence : find_unexplained(model, findings)) model.limits.push_back(std::move(sentence));
    is_written = render::write_json(model, findings, write_out);
  } else {
    is_written = write_out(make_text(model, findings, style, contents));
  }
  if (!is_written) return ExitStatus::kUnreadable;
  if (!findings.empty()) return ExitStatus::kFindings;
  return has_all_rules ? ExitStatus::kNothingFound : ExitStatus::kUnreadable;
}

void add_style_options(CLI::App& verb, ReportStyle& style) {
  add_format_option(verb, style.format);
  verb.add_flag("--full", style.full, kFullHelp)->group("What comes out");
}

void add_format_option(CLI::App& verb, std::string& format) {
  verb.add_option("--format", format, "The format of the report")
      ->check(CLI::Validator(
          [](std::string& word) { return word == "text" || word == "json" ? "" : word + " is neither text nor json"; },
          ""))
      ->type_name("text|json")
      ->default_str("text")
      ->group("What comes out");
}

}  // namespace forksight
