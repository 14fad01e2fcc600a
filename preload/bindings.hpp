// Calls of MPI, UCX and the CUDA driver by symbol. The shim exports none of their names: these have no versions, so an
// export would also take calls that are not meant for it (docs/decisions/0014-calls-watched-at-their-slots.md).
// Instead, the shim changes the PLT slots through which a loaded object calls them: they lead to wrappers of the
// functions that the loader has bound them to.
#pragma once

namespace forksight {

// Watches the objects of the start-up, when all of them are bound. Called by the constructor.
void watch_startup_calls();

// Watches the object that dlopen returned as `handle`, when its functions are looked up for the first time; its caller
// keeps it open meanwhile. `real_dlsym` finds functions that are not bound yet.
using RealDlsym = void* (*)(void* handle, const char* name);
void watch_opened_calls(void* handle, RealDlsym real_dlsym);

}  // namespace forksight
