// The shim's atfork handlers, registered by the initialiser.
#pragma once

namespace forksight {

// False until the process has, or had, a second thread.
bool fork_is_watched();
void on_prepare();
void on_parent();
void on_child();

}  // namespace forksight
