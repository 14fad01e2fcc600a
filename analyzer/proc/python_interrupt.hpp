// What CPython does on SIGINT: a script may have replaced the handler that raises KeyboardInterrupt. The kernel shows
// no difference, for both are the interpreter's one handler in C; its table of handlers does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace forksight::proc {

// Fills `out` from an address of the process; false if not all of it can be read.
using ReadMemory = std::function<bool(std::uint64_t address, std::span<std::byte> out)>;

// Pure. `words`: writable memory of the interpreter, where its table may be. nullopt: no table of a layout that is
// known (CPython 3.8 to 3.15).
std::optional<bool> find_default_interrupt(std::span<const std::uint64_t> words, const ReadMemory& read);

// Of a process whose program is CPython: SIGINT still raises KeyboardInterrupt. nullopt: that could not be seen.
std::optional<bool> has_default_interrupt(std::int32_t tid);

}  // namespace forksight::proc
