// The help of a verb: examples first, because most readers look for examples. The text is wrapped at the width of the
// terminal, between 40 and 100 columns; at 80 columns if standard output is no terminal.
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
