// The handlers that the program and its libraries registered through pthread_atfork, in order of registration. Each is
// registered in the guise of a trampoline of ours, which knows its place in the list: so the trace says which handler
// runs, before it runs, and how long it took (atfork_run.cpp).
#pragma once

#include <cstdint>

namespace forksight {

inline constexpr std::uint32_t kMaxHandlers = 128;

using AtforkHandler = void (*)();
struct AtforkHandlers {
  AtforkHandler prepare;  // null: none, here and in the guise
  AtforkHandler parent;
  AtforkHandler child;
};

// Enters the handlers and returns what is to be registered for them: themselves, where the list is full. `library` is
// the handle under which libc forgets them at dlclose. What is registered again (a library that is opened again) takes
// its old place.
AtforkHandlers wrap_handlers(const AtforkHandlers& handlers, const void* library);
// What the trampolines at a place stand for.
AtforkHandlers handlers_at(std::uint32_t place);

// The kHandlers record of the list as it is now, written if it changed. 0 if the list is empty, or without a trace.
std::uint64_t ensure_handlers_record();
std::uint32_t handler_count();

}  // namespace forksight
