// Prints all samples as JSON reports. A NUL byte follows each report.
#include <cstdio>

#include "diagnose/diagnose.hpp"
#include "render/json.hpp"
#include "render/samples.hpp"

int main() {
  for (forksight::test::Sample& sample : forksight::test::all_samples()) {
    const auto findings = forksight::diagnose(sample.model);
    const std::string text = forksight::render::render_json(sample.model, findings);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fputc('\0', stdout);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
