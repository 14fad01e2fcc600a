// Lines of Python of all threads of a process, from its memory alone: alive or in a core, CPython 3.9 to 3.15. Nothing
// is executed in it and nothing of it needs to work. All of it is hostile input: time and memory are bounded, whatever
// is there.
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
  // 0: it is none of the image's threads. So are those that a fork left behind, until Python's own handler in the child
  // forgets them (a fork by C code never comes to it): their stacks are what they did at the fork.
  std::int32_t tid = 0;
  std::uint64_t pointer = 0;  // pthread_self()
  model::Stack stack;         // as collect::parse_python_stacks makes them; at most 128 frames. Empty: runs no Python
  bool holds_gil = false;
  std::vector<std::string> locals;  // names of the innermost frame's, arguments first
};

// One for each thread that has a state in an interpreter, first made first. If the process does not stand still, what
// the threads that run are said to do may be of different moments. `limits`: why there are none, though it is_python.
std::vector<PythonThread> read_python_threads(const image::Image& image, symbols::Symbolizer& symbols,
                                              std::vector<std::string>& limits);

// The same of an interpreter that was found.
std::vector<PythonThread> read_python_threads(const image::Image& image, const PythonInterpreter& python,
                                              std::vector<std::string>& limits);

}  // namespace forksight::inspect
