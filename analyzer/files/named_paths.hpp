// The files and folders that the caller of the command has named: cores, traces, the folder of a run, queues. Only
// these may be opened whatever they contain (guard/opener.hpp).
#pragma once

#include <string>
#include <string_view>

namespace forksight::files {

// Notes a path of the command line. Call it before a process is started that reads the file.
void name_path(std::string path);
// True for a named path, and for a path below a named folder that contains no "..".
bool is_named_path(std::string_view path);

}  // namespace forksight::files
