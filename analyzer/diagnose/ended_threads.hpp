// The first thread of a process may have ended by pthread_exit(). The kernel lists it until the last thread has ended.
#pragma once

#include "model/model.hpp"

namespace forksight {

inline bool has_thread_ended(const model::Wait& wait) { return wait.state == 'Z' || wait.state == 'X'; }

}  // namespace forksight
