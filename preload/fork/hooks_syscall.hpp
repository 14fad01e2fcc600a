#pragma once

namespace forksight {

// By the initialiser: the next definition of syscall() in the global scope.
void set_next_syscall(void* function);

}  // namespace forksight
