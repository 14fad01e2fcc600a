// Finds the CPython interpreter in a process: the address of its runtime state, and the layout of its structures.
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

// True if the process runs CPython 3 of any version. This looks only at the names of mapped files, so it costs nothing.
bool is_python(const image::Image& image);

// nullopt: there is no interpreter, or it cannot be read. If it cannot be read, `limits` gets a sentence with the
// reason.
std::optional<PythonInterpreter> find_python(const image::Image& image, symbols::Symbolizer& symbols,
                                             std::vector<std::string>& limits);

// Returns the minor version according to a file name: 10 for "libpython3.10.so.1.0", "python3.10" and
// "_json.cpython-310-x86_64-linux-gnu.so". nullopt: the name shows no version.
std::optional<int> python_minor_of_file(const std::string& path);

}  // namespace forksight::inspect
