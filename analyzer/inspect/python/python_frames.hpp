// Python lines of all threads of a process that is alive or in a core, for CPython 3.9 to 3.15. They are read from its
// memory. Nothing is executed in the process, and nothing in it needs to work. All of its memory is hostile input: the
// time and memory that reading takes are bounded, whatever it contains.
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
  // 0: it is not a thread of the image. This includes threads that a fork left behind, until Python's own handler in
  // the child forgets them (after a fork by C code, it never does). The stacks of these show what they did at the fork.
  std::int32_t tid = 0;
  std::uint64_t pointer = 0;  // pthread_self()
  // as collect::parse_python_stacks makes them; at most 128 frames. Empty: it runs no Python code
  model::Stack stack;
  bool holds_gil = false;
  std::vector<std::string> locals;  // of the innermost frame, arguments first
};

// One entry for each thread that has a state in an interpreter, in the order of their creation. If the process is not
// stopped, the entries of running threads may show different moments. `limits` gets the reason if there are none
// although the process is a Python.
std::vector<PythonThread> read_python_threads(const image::Image& image, symbols::Symbolizer& symbols,
                                              std::vector<std::string>& limits);

// The same, for an interpreter that was found before.
std::vector<PythonThread> read_python_threads(const image::Image& image, const PythonInterpreter& python,
                                              std::vector<std::string>& limits);

}  // namespace forksight::inspect
