#pragma once

namespace forksight {

// Called by the initialiser with the next definition of syscall() in the global scope.
void set_next_syscall(void* function);

}  // namespace forksight
