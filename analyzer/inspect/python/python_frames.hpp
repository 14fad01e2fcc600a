// Reads the lines of Python that the threads of a process run, for CPython 3.9 to 3.15. The process is alive or in a
// core. The lines are read from the memory of the process. Nothing is executed in the process, and no part of its code
// needs to work. All of its memory is hostile input: whatever it contains, the time and memory that reading takes are
// bounded.
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
  // 0: the thread is not in the image. Python lists a thread that the fork left behind, until Python's own handler in
  // the child removes it from the list. After a fork by C code this handler does not run. The stack of such a thread
  // shows what the thread did at the fork.
  std::int32_t tid = 0;
  std::uint64_t pointer = 0;  // pthread_self()
  // The stack has the form that collect::parse_python_stacks makes, and at most 128 frames. Empty: the thread runs no
  // Python code.
  model::Stack stack;
  bool holds_gil = false;
  std::vector<std::string> locals;  // of the innermost frame, arguments first
};

// Returns one entry for each thread that has a state in an interpreter, in the order of their creation. If the process
// is not stopped, the entries of running threads may show different moments. If a process that runs Python has no
// entries, `limits` gets the reason.
std::vector<PythonThread> read_python_threads(const image::Image& image, symbols::Symbolizer& symbols,
                                              std::vector<std::string>& limits);

// Does the same for an interpreter that find_python() has found.
std::vector<PythonThread> read_python_threads(const image::Image& image, const PythonInterpreter& python,
                                              std::vector<std::string>& limits);

}  // namespace forksight::inspect
