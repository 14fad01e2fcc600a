// Keeps the paths of the files and folders that the caller of the command has named: cores, traces, the folder of a
// run, queues. If root runs forksight, the opener (guard/opener.hpp) opens these files whatever they contain. The
// opener opens another file only if it is a program, a library, a debug file or a queue.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forksight::files {

// Notes a path of the command line. Call this function before the process that reads the file is started.
void name_path(std::string path);

struct NamedPlace {
  std::string named;  // the path that the caller has named
  std::string rest;   // the part of the path after `named`; "" for the named path itself
};
// Returns each named path that is equal to `path`, or that is a folder above `path`. If the part of `path` below a
// named folder contains "..", that folder does not count.
std::vector<NamedPlace> find_named_places(std::string_view path);
// True if find_named_places() finds a place for this path.
bool is_named_path(std::string_view path);

}  // namespace forksight::files
