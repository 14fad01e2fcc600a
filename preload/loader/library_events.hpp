// Libraries came or went. The table of modules tells it here; observers.def lists who is told.
#pragma once

#include "loader/modules.hpp"

namespace forksight {

// `module` is in the table now, with its layout. Called by the one thread that is at work on the table, as all of
// these.
void library_came(Module& module);
// It is about to leave the table.
void library_gone(Module& module);
// What was remembered by address of the loader's objects may be wrong: some have gone, or their order has changed.
void libraries_changed(bool some_are_gone);
// The table is up to date.
void libraries_settled();
// There is work for libraries_settled() although no library came or went.
bool libraries_are_awaited();

}  // namespace forksight
