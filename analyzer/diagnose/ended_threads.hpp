// Recognises a thread that has ended although the kernel still lists it. The first thread of a process may end by
// pthread_exit(). Until the last thread of the process has ended, the kernel lists the first thread as a zombie.
#pragma once

#include "model/model.hpp"

namespace forksight {

inline bool has_thread_ended(const model::Wait& wait) { return wait.state == 'Z' || wait.state == 'X'; }

}  // namespace forksight
