// Watches calls of MPI, UCX and the CUDA driver that are bound by symbol. The shim exports none of these functions.
// Their names have no versions, so an export would also receive calls that are meant for other functions of the same
// name (docs/decisions/0014-calls-watched-at-their-slots.md). Instead, the shim changes the PLT slots through which a
// loaded object calls these functions. Each slot then has the address of a wrapper. The wrapper calls the function to
// which the loader had bound the slot.
#pragma once

namespace forksight {

// Watches the calls of the objects that were loaded at start-up. Called by the constructor, when all of these objects
// are bound.
void watch_startup_calls();

// Watches the calls of the object that dlopen returned as `handle`. Called when a program looks up a function in the
// object for the first time. The program keeps the object open meanwhile. If a slot is not bound yet, `real_dlsym`
// finds the function for the slot.
using RealDlsym = void* (*)(void* handle, const char* name);
void watch_opened_calls(void* handle, RealDlsym real_dlsym);

}  // namespace forksight
