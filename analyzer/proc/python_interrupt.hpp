// Tells which handlers of a CPython program are written in Python. A script may have replaced the handler of SIGINT
// that raises KeyboardInterrupt. The kernel shows no difference, because the interpreter has the same C handler for all
// Python handlers. Nor does the kernel show whether a handler of SIGABRT is one of the script or the one of
// faulthandler, which ends the process. The interpreter's own table of handlers shows the difference.
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

struct PythonHandlers {
  bool has_default_interrupt = false;  // SIGINT still raises KeyboardInterrupt
  bool handles_abort = false;          // the script has a handler of SIGABRT
};

// `words`: writable memory of the interpreter that may contain the table of handlers. nullopt: `words` contains no
// table with a known layout (CPython 3.8 to 3.15). A pure function.
std::optional<PythonHandlers> find_python_handlers(std::span<const std::uint64_t> words, const ReadMemory& read);

// For a process that runs CPython. nullopt: the table could not be read.
std::optional<PythonHandlers> read_python_handlers(std::int32_t tid);

}  // namespace forksight::proc
