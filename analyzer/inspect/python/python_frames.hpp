// Finds the lines of Python code that the threads of a process run, for CPython 3.9 to 3.15. The process is alive or in
// a core. The lines are read from the memory of the process. Nothing is executed in the process, so its own code need
// not work. All of its memory is hostile input: whatever the memory contains, the reading takes a bounded time and a
// bounded amount of forksight's own memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "image/image.hpp"
#include "inspect/python/python_interpreter.hpp"
#include "model/model.hpp"
#include "symbols/symbols.hpp"

namespace forksight::inspect {

struct PythonThread {
  // 0: the image does not have the thread. For example, the image is a forked child, and the fork did not copy the
  // thread. Python's list of threads in the child's memory still contains such a thread, until Python's own atfork
  // handler in the child removes it from the list. But if C code has called fork(), this handler does not run. The
  // stack of such a thread shows what the thread did at the fork.
  std::int32_t tid = 0;
  std::uint64_t pointer = 0;  // pthread_self()
  // The frames have the form in which collect::parse_python_stacks() returns them. There are at most 128 frames. Empty:
  // the thread runs no Python code.
  model::Stack stack;
  bool holds_gil = false;
  std::vector<std::string> locals;  // of the innermost frame, arguments first
};

// Returns one entry for each thread that has a thread state in an interpreter. The entries are in the order in which
// the thread states were created. If the process is not stopped, the entries of running threads may show different
// moments. If the process runs Python, but there are no entries, adds the reason to `limits`.
std::vector<PythonThread> read_python_threads(const image::Image& image, symbols::Symbolizer& symbols,
                                              std::vector<std::string>& limits);

// Does the same for an interpreter that find_python() has found.
std::vector<PythonThread> read_python_threads(const image::Image& image, const PythonInterpreter& python,
                                              std::vector<std::string>& limits);

}  // namespace forksight::inspect
