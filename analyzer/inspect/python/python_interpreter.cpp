#include "inspect/python/python_interpreter.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "model/base_name.hpp"

namespace forksight::inspect {
namespace {

constexpr std::string_view kLibrary = "libpython3";
constexpr std::string_view kExtension = ".cpython-3";

bool is_program(std::string_view name) { return name == "python" || name.starts_with("python3"); }

// Names of files that may contain the interpreter, the likeliest first.
std::vector<std::string> hosts(const image::Image& image) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  };
  for (const symbols::Module& module : image.modules) {
    if (model::base_name(module.path).starts_with(kLibrary)) add(model::base_name(module.path));
  }
  for (const symbols::Module& module : image.modules) {
    if (is_program(model::base_name(module.path))) add(model::base_name(module.path));
  }
  add(model::base_name(image.exe));
  return names;
}

struct Version {
  int minor = 0;
  bool is_release = true;  // or a release candidate, which has the same layout
};

// Py_Version exists since 3.11 and has the value of PY_VERSION_HEX: 0x030B07F0.
std::optional<Version> decode_version(std::uint64_t hex) {
  constexpr unsigned kCandidate = 0xC;
  if (hex >> 24U != 3) return std::nullopt;
  return Version{static_cast<int>((hex >> 16U) & 0xFFU), ((hex >> 4U) & 0xFU) >= kCandidate};
}

std::optional<Version> find_version(const image::Image& image, symbols::Symbolizer& symbols, const std::string& host) {
  if (const auto address = symbols.find_symbol("Py_Version", host)) {
    const auto hex = image.memory->value<std::uint64_t>(*address);
    if (const auto version = hex ? decode_version(*hex) : std::nullopt) return version;
  }
  if (const auto minor = python_minor_of_file(host)) return Version{*minor};
  // The interpreter is linked into the program, whose name does not show the version. The file names of extension
  // modules show the version, except the names of modules that work with any version.
  for (const symbols::Module& module : image.modules) {
    if (model::base_name(module.path).find(kExtension) == std::string_view::npos) continue;
    if (const auto minor = python_minor_of_file(module.path)) return Version{*minor};
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> python_minor_of_file(const std::string& path) {
  std::string_view name = model::base_name(path);
  const std::size_t extension = name.find(kExtension);
  if (extension != std::string_view::npos) {
    name.remove_prefix(extension + kExtension.size());
  } else if (name.starts_with("libpython3.")) {
    name.remove_prefix(std::string_view("libpython3.").size());
  } else if (name.starts_with("python3.")) {
    name.remove_prefix(std::string_view("python3.").size());
  } else {
    return std::nullopt;
  }
  int minor = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), minor);
  return error == std::errc{} && end - name.data() <= 2 ? std::optional(minor) : std::nullopt;
}

bool is_python(const image::Image& image) {
  if (is_program(model::base_name(image.exe))) return true;
  return std::ranges::any_of(image.modules, [](const symbols::Module& module) {
    const std::string_view name = model::base_name(module.path);
    return name.starts_with(kLibrary) || name.find(kExtension) != std::string_view::npos;
  });
}

std::optional<PythonInterpreter> find_python(const image::Image& image, symbols::Symbolizer& symbols,
                                             std::vector<std::string>& limits) {
  if (!is_python(image)) return std::nullopt;
  const auto give_up = [&](const std::string& why) {
    limits.push_back(fmt::format("process {}: its Python stacks cannot be read: {}", image.pid, why));
    return std::nullopt;
  };
  for (const std::string& host : hosts(image)) {
    const auto runtime = symbols.find_symbol("_PyRuntime", host);
    if (!runtime) continue;
    const auto version = find_version(image, symbols, host);
    if (!version) return give_up(fmt::format("the version of {} is not known", host));
    if (version->minor < kFirstPythonMinor || version->minor > kLastPythonMinor || !version->is_release) {
      return give_up(fmt::format("CPython 3.{}{} cannot be read; forksight reads the memory of 3.{} to 3.{}",
                                 version->minor, version->is_release ? "" : " before its release", kFirstPythonMinor,
                                 kLastPythonMinor));
    }
    const auto layout = version->minor >= kFirstDescribedMinor ? read_python_layout(*image.memory, *runtime)
                                                               : known_python_layout(version->minor);
    if (!layout || layout->minor != version->minor)
      return give_up(fmt::format("{} does not describe its memory layout", host));
    return PythonInterpreter{*runtime, *layout};
  }
  return give_up("the symbol _PyRuntime of its interpreter was not found");
}

}  // namespace forksight::inspect
