// The shim's atfork handlers, registered by the initialiser.
#pragma once

namespace forksight {

void on_prepare();
void on_parent();
void on_child();

}  // namespace forksight
