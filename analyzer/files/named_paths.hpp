// The files and folders that the caller of the command has named: cores, traces, the folder of a run, queues. Only
// these may be opened whatever they contain (guard/opener.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forksight::files {

// Notes a path of the command line. Call it before a process is started that reads the file.
void name_path(std::string path);

struct NamedPlace {
  std::string named;  // the path that the caller has named
  std::string rest;   // the part of the asked path after it; "" for the named path itself
};
// The named paths to which this path is equal, or below which it is. A path with ".." is below none.
std::vector<NamedPlace> find_named_places(std::string_view path);
// True for a named path, and for a path below a named folder that contains no "..".
bool is_named_path(std::string_view path);

}  // namespace forksight::files
