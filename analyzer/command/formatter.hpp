// The help of a verb: examples first, because most readers look for examples. The text is wrapped at the width of the
// terminal, but at least at 40 and at most at 100 columns. If the width is not known, the text is wrapped at 80
// columns.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <utility>

namespace forksight {

struct VerbHelp;

class ExampleFormatter : public CLI::Formatter {
 public:
  ExampleFormatter(std::string usage, std::string examples)
      : usage_(std::move(usage)), examples_(std::move(examples)) {}

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

  const std::string& usage() const { return usage_; }
  const std::string& examples() const { return examples_; }

 private:
  std::string usage_;
  std::string examples_;
};

std::string render_help(const VerbHelp& verb, std::size_t columns);

}  // namespace forksight
