// The handlers that the program and its libraries registered through pthread_atfork, in order of registration.
#pragma once

#include <cstdint>

namespace forksight {

void note_atfork_handlers(void (*prepare)(), void (*parent)(), void (*child)());
// The kHandlers record of the list as it is now, written if it changed. 0 if the list is empty, or without a trace.
std::uint64_t ensure_handlers_record();

}  // namespace forksight
