// compare_report EXPECTED REPORT [RUN]: compares a report with expected findings, as the suite does. Some tests make
// their reports without the suite, and use this program.
// EXPECTED is a list of findings in the format of `forksight suite list --format json`. RUN is an element of `runs` in
// that format. If RUN is given, the report must also have the outcome that RUN expects. Prints each difference. The
// exit status is 1 if there is a difference, and 2 if a file is invalid.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "render/findings_json.hpp"
#include "render/json.hpp"
#include "suite/compare.hpp"
#include "suite/expectation_json.hpp"

namespace {

std::string read_text(const char* path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <class Json>
Json read(const char* path) {
  std::ifstream stream(path);
  return Json::parse(stream);
}

std::vector<std::string> compare(int argc, char** argv) {
  const auto expected = forksight::suite::read_findings(read<nlohmann::ordered_json>(argv[1]));
  const auto told = forksight::render::read_findings(forksight::render::kReportSchema, read_text(argv[2]));
  if (!told) throw std::runtime_error(told.error());
  if (argc == 3) return forksight::suite::compare_findings(told->findings, expected);
  const auto json = read<nlohmann::json>(argv[3]);
  forksight::suite::ExpectedRun run;
  run.outcome = json.at("outcome");
  run.says = json.at("says");
  run.rule = json.value("rule", "");
  return forksight::suite::compare_ended(told->findings, expected, run);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fputs("compare_report EXPECTED REPORT [RUN]\n", stderr);
    return 2;
  }
  try {
    const auto lines = compare(argc, argv);
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
    return lines.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
