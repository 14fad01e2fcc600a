// Help begins with examples, because most readers look for examples.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

namespace forksight {

class ExampleFormatter : public CLI::Formatter {
 public:
  ExampleFormatter(std::string usage, std::string examples)
      : usage_(std::move(usage)), examples_(std::move(examples)) {}

  std::string make_description(const CLI::App* app) const override {
    return app->get_description() + "\n\n" + examples_;
  }
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: " + usage_ + "\n"; }

  const std::string& usage() const { return usage_; }
  const std::string& examples() const { return examples_; }

 private:
  std::string usage_;
  std::string examples_;
};

}  // namespace forksight
