// Files that become shorter while forksight has them mapped. libelf maps the files that it reads, and the owner of a
// file may cut it at any time: the next look at the missing pages ends the process with SIGBUS. Reading whole libraries
// into memory would prevent that, and would make `why` several times slower.
#pragma once

namespace forksight::files {

// From now on a page that a file has lost reads as zeros, which every reader of hostile files bears. Does nothing if
// the program has a handler of its own. Call it before threads exist.
void survive_cut_files();

// Some file lost pages that were looked at.
bool was_some_file_cut();

}  // namespace forksight::files
