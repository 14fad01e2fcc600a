// Events: libraries were loaded or unloaded. modules.cpp sends these events. observers.def lists the receivers.
#pragma once

#include "loader/modules.hpp"

namespace forksight {

// The next four functions send the events. The thread that changes the table of modules calls them.

// All members of `module` are set, and `module` is being added to the table.
void library_added(Module& module);
// `module` is about to be removed from the table.
void library_removed(Module& module);
// The loader's list has changed. Receivers must forget the facts that they have stored about objects of the list,
// because these facts may be wrong. `some_are_gone`: modules were removed from the table.
void libraries_changed(bool some_are_gone);
// The table is up to date.
void libraries_settled();
// True if a receiver of libraries_settled() still has work to do. Then the event is sent even if no library was loaded
// or unloaded.
bool libraries_are_awaited();

}  // namespace forksight
