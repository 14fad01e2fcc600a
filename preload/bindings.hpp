// Calls of MPI, UCX and the CUDA driver by symbol. The shim exports none of their names: they have no versions, so an
// export would take what is not meant for it (docs/decisions/0014-calls-watched-at-their-slots.md). Instead the slots
// of the PLT through which a loaded object calls them are made to lead to wrappers of what the loader has bound them
// to.
#pragma once

namespace forksight {

// The objects of the start-up, once they are all bound. By the constructor.
void watch_startup_calls();

// The object that dlopen gave out as `handle`, when its functions are looked up for the first time: its caller keeps it
// open meanwhile. `real_dlsym` is asked for what is not bound yet.
using RealDlsym = void* (*)(void* handle, const char* name);
void watch_opened_calls(void* handle, RealDlsym real_dlsym);

}  // namespace forksight
