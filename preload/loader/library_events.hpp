// Events: libraries were loaded or unloaded. The table of modules sends them; observers.def lists the receivers.
#pragma once

#include "loader/modules.hpp"

namespace forksight {

// `module` is now in the table, with its layout. All events but the last are sent by the thread that works on the
// table.
void library_came(Module& module);
// The module is about to leave the table.
void library_gone(Module& module);
// Data that was remembered by the address of the loader's objects may be wrong: some objects are unloaded, or their
// order has changed.
void libraries_changed(bool some_are_gone);
// The table is up to date.
void libraries_settled();
// True if libraries_settled() has work to do although no library was loaded or unloaded.
bool libraries_are_awaited();

}  // namespace forksight
