// The handlers that the program and its libraries registered through pthread_atfork, in the order of registration. The
// shim registers a trampoline with libc instead of each handler. A trampoline knows the place of its handler in this
// list. So the trace can name a handler before it runs, and can show how long the handler took (atfork_run.cpp).
#pragma once

#include <cstdint>

#include "forksight/trace/handlers.hpp"

namespace forksight {

inline constexpr std::uint32_t kMaxHandlers = trace::kMaxListedHandlers;

using AtforkHandler = void (*)();
struct AtforkHandlers {
  AtforkHandler prepare;  // null: no handler, and no trampoline
  AtforkHandler parent;
  AtforkHandler child;
};

// Adds the handlers to the list and returns what to register with libc: trampolines, or the handlers themselves if the
// list is full. `library` is the handle by which libc, at dlclose, finds the handlers to remove. Handlers that are
// registered again (by a library that is opened again) get their old place.
AtforkHandlers wrap_handlers(const AtforkHandlers& handlers, const void* library);
// The handlers that the trampolines of this place call.
AtforkHandlers handlers_at(std::uint32_t place);

// Returns a reference to the kHandlers record of the present list; 0 if the list is empty, or without a trace. A new
// record is written if the list has changed since the last record.
std::uint64_t ensure_handlers_record();
std::uint32_t handler_count();

}  // namespace forksight
