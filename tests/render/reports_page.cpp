// Makes the text of docs/reports.md. `reports_page` prints the text. `reports_page PAGE` exits with status 1 if PAGE
// has another text. `reports_page --write PAGE` writes the text to PAGE.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "render/programs.hpp"

int main(int argc, char** argv) {
  const std::string page = forksight::test::make_reports_page();
  if (argc == 1) {
    std::cout << page;
    return 0;
  }
  const bool is_written = std::string_view(argv[1]) == "--write";
  if (argc != (is_written ? 3 : 2)) return 2;
  const char* const path = argv[argc - 1];
  if (is_written) {
    std::ofstream file(path);
    file << page << std::flush;
    return file ? 0 : 1;
  }
  std::ostringstream kept;
  kept << std::ifstream(path).rdbuf();
  if (kept.str() == page) return 0;
  std::cerr << path << " is out of date: build the target reports_page, and look at the difference\n";
  return 1;
}
