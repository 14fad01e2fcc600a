#include "command/show_report.hpp"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "command/output.hpp"
#include "diagnose/diagnose.hpp"
#include "render/json.hpp"
#include "render/text.hpp"
#include "render/waits.hpp"

namespace forksight {

ExitStatus show_report(model::Model& model, const std::string& format, const OutsideFindings& outside,
                       ShownWaits waits) {
  std::vector<Finding> findings = diagnose(model);
  outside.add_to(model, findings);
  for (std::string& sentence : find_unexplained(model, findings)) model.limits.push_back(std::move(sentence));
  std::string text;
  if (format == "json") {
    text = render::render_json(model, findings);
  } else {
    render::TextOptions options;
    options.colour = render::wants_colour(STDOUT_FILENO);
    std::error_code ignored;
    options.cwd = std::filesystem::current_path(ignored);
    text = render::render_text(model, findings, options);
    const std::string others = render::render_waits(
        model,
        waits == ShownWaits::kAll ? render::find_untold(model, findings) : find_unexplained_processes(model, findings),
        options);
    if (!others.empty()) text += "\n" + others;
  }
  if (!write_out(text)) return ExitStatus::kUnreadable;
  return findings.empty() ? ExitStatus::kNothingFound : ExitStatus::kFindings;
}

void add_format_option(CLI::App& verb, std::string& format) {
  verb.add_option("--format", format, "How to say it")
      ->check(CLI::Validator(
          [](std::string& word) { return word == "text" || word == "json" ? "" : word + " is neither text nor json"; },
          ""))
      ->type_name("text|json")
      ->default_str("text")
      ->group("What comes out");
}

}  // namespace forksight
