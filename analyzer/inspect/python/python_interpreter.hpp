// The CPython interpreter in a process: where its runtime state is, and how it is laid out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "image/image.hpp"
#include "inspect/python/python_layout.hpp"
#include "symbols/symbols.hpp"

namespace forksight::inspect {

struct PythonInterpreter {
  std::uint64_t runtime = 0;  // address of _PyRuntime
  PythonLayout layout;
};

// By the names of what it has mapped alone: costs nothing. CPython 3, of whatever version.
bool is_python(const image::Image& image);

// nullopt: no interpreter, or none that can be read; then, if it is_python, `limits` gets a sentence that says why.
std::optional<PythonInterpreter> find_python(const image::Image& image, symbols::Symbolizer& symbols,
                                             std::vector<std::string>& limits);

// What names of files say of the version: "libpython3.10.so.1.0", "python3.10", "_json.cpython-310-x86_64-linux-gnu.so"
// are 10. nullopt: nothing.
std::optional<int> python_minor_of_file(const std::string& path);

}  // namespace forksight::inspect
