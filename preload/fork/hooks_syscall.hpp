#pragma once

namespace forksight {

// Called by the initialiser with the definition of syscall() that follows the shim's one in the loader's global scope.
void set_next_syscall(void* function);

}  // namespace forksight
