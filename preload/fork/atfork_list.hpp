// The handlers that the program and its libraries registered through pthread_atfork, in the order of registration. Each
// is registered as a trampoline of the shim, which knows its place in the list. So the trace shows which handler runs,
// before it runs, and how long it took (atfork_run.cpp).
#pragma once

#include <cstdint>

namespace forksight {

inline constexpr std::uint32_t kMaxHandlers = 128;

using AtforkHandler = void (*)();
struct AtforkHandlers {
  AtforkHandler prepare;  // null: none, also no trampoline
  AtforkHandler parent;
  AtforkHandler child;
};

// Enters the handlers and returns what to register for them: trampolines, or the handlers themselves if the list is
// full. `library` is the handle under which libc forgets them at dlclose. Handlers that are registered again (by a
// library that is opened again) get their old place.
AtforkHandlers wrap_handlers(const AtforkHandlers& handlers, const void* library);
// The handlers of the trampolines at a place.
AtforkHandlers handlers_at(std::uint32_t place);

// The kHandlers record of the present list, written if the list has changed. 0 if the list is empty, or without a
// trace.
std::uint64_t ensure_handlers_record();
std::uint32_t handler_count();

}  // namespace forksight
