// Handles files that become shorter while forksight has them mapped. libelf maps the files that it reads, and the owner
// of a file may cut the file at any time. Without a handler, the next read of a missing page ends forksight with
// SIGBUS. forksight could read whole libraries into memory instead, but that would make `why` several times slower.
#pragma once

namespace forksight::files {

// After this call, a page that a file has lost reads as zeros. Every reader of hostile files copes with such zeros.
// This function does nothing if the program has a SIGBUS handler of its own. Call this function before threads exist.
void read_lost_pages_as_zeros();

// True if forksight has read a page that its file had lost.
bool has_read_lost_page();

}  // namespace forksight::files
