// nameless DIR...: checks each folder of a run. A run first calls may_find_with_names(), without the names of
// functions. If the diagnosis with names has a finding, this call must have returned true. Prints one line "DIR
// RULE..." for each folder. The exit status is 1 if the call missed a finding, and 3 if a folder cannot be read.
#include <cstdio>
#include <filesystem>

#include "../support/reader.hpp"
#include "collect/load.hpp"
#include "diagnose/diagnose.hpp"

int main(int argc, char** argv) {
  int status = 0;
  for (int i = 1; i < argc; ++i) {
    forksight::collect::LoadOptions without;
    without.symbolize = false;
    const std::filesystem::path folder = argv[i];
    const auto named = forksight::collect::load_run(forksight::files::reader_of_test(), {folder});
    const auto nameless = forksight::collect::load_run(forksight::files::reader_of_test(), {folder}, without);
    if (!named || !nameless) {
      std::fprintf(stderr, "%s: %s\n", argv[i], (named ? nameless.error() : named.error()).c_str());
      return 3;
    }
    const auto findings = forksight::diagnose(named.value());
    std::printf("%s", argv[i]);
    for (const forksight::Finding& finding : findings) std::printf(" %s", finding.rule.c_str());
    std::printf("\n");
    if (findings.empty() || forksight::may_find_with_names(nameless.value())) continue;
    std::printf("%s: may_find_with_names() is false, but the diagnosis with names has a finding\n", argv[i]);
    status = 1;
  }
  return status;
}
