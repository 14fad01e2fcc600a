// What CPython does on SIGINT: a script may have replaced the handler that raises KeyboardInterrupt. The kernel shows
// no difference, because both are the interpreter's one handler in C. The interpreter's table of handlers shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace forksight::proc {

// Fills `out` with memory of the process; false if not all of it can be read.
using ReadMemory = std::function<bool(std::uint64_t address, std::span<std::byte> out)>;

// Pure. `words`: writable memory of the interpreter that may contain the table. nullopt: no table with a known layout
// (CPython 3.8 to 3.15).
std::optional<bool> find_default_interrupt(std::span<const std::uint64_t> words, const ReadMemory& read);

// For a process whose program is CPython: SIGINT still raises KeyboardInterrupt. nullopt: that could not be read.
std::optional<bool> has_default_interrupt(std::int32_t tid);

}  // namespace forksight::proc
