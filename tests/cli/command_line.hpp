// Runs the built command and waits for it.
#pragma once

#include <string>
#include <vector>

namespace forksight::test {

struct Finished {
  int status = -1;  // its exit status; 128 + signal if one ended it
  std::string out;
  std::string err;
};

// `out_path`: a file to be its standard output instead of a pipe. `folder`: where it runs, "": here.
Finished run_forksight(const std::vector<std::string>& arguments, const std::string& out_path = "",
                       const std::string& folder = "");

}  // namespace forksight::test
