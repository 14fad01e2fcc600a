// Tells whether CPython raises KeyboardInterrupt on SIGINT. A script may have replaced the Python handler that raises
// it. The kernel shows no difference, because the interpreter has the same C handler for all Python handlers. The
// interpreter's own table of handlers shows the difference.
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

// True if the table of handlers has Python's default handler for SIGINT. `words`: writable memory of the interpreter
// that may contain the table. nullopt: `words` contains no table with a known layout (CPython 3.8 to 3.15). A pure
// function.
std::optional<bool> find_default_interrupt(std::span<const std::uint64_t> words, const ReadMemory& read);

// For a process that runs CPython: true if SIGINT still raises KeyboardInterrupt. nullopt: this could not be read.
std::optional<bool> has_default_interrupt(std::int32_t tid);

}  // namespace forksight::proc
