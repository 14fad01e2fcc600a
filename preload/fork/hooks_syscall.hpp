#pragma once

namespace forksight {

// Called by the initialiser. `function`: the definition of syscall() that comes after the shim's in the global scope.
void set_next_syscall(void* function);

}  // namespace forksight
