// Runs the built command and waits for it.
#pragma once

#include <string>
#include <vector>

namespace forksight::test {

struct Finished {
  int status = -1;  // the exit status, or 128 + the signal that ended the command
  std::string out;
  std::string err;
};

// If `out_path` is given, standard output goes to this file, and `out` of the result is empty. `folder` is the working
// folder of the command. "" means the current folder.
Finished run_forksight(const std::vector<std::string>& arguments, const std::string& out_path = "",
                       const std::string& folder = "");

}  // namespace forksight::test
