#include "suite/needs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <string_view>
#include <vector>

#include "proc/proc_fs.hpp"
#include "suite/program.hpp"

namespace forksight::suite {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Packaged {
  std::string_view start;  // how the name of the library, program or module begins
  const char* package;
};
// Packages of Debian 12. The first entry that fits is used. OpenBLAS has only one entry, because its builds differ only
// in their paths, and only the file name is compared.
constexpr std::array kPackages = {
    Packaged{"libomp.so", "libomp5-14"},
    Packaged{"libgomp.so", "libgomp1"},
    Packaged{"libopenblas.so", "libopenblas0"},
    Packaged{"libfftw3", "libfftw3-double3"},
    Packaged{"libtbb.so", "libtbb12"},
    Packaged{"libglib-2.0.so", "libglib2.0-0"},
    Packaged{"libstdc++.so", "libstdc++6"},
    Packaged{"libgcc_s.so", "libgcc-s1"},
    Packaged{"libpython3.11.so", "libpython3.11"},
    Packaged{"python3", "python3"},
    Packaged{"torch", "python3-torch"},
};

std::string package_of(std::string_view name) {
  const auto found = std::ranges::find_if(kPackages, [&](const Packaged& one) { return name.starts_with(one.start); });
  return found == kPackages.end() ? "" : found->package;
}

// Returns the libraries of an ELF file that the loader does not find. The file itself is not run.
std::vector<std::string> list_missing_libraries(const fs::path& file, const fs::path& folder) {
  const Captured said =
      capture({"env", "LD_TRACE_LOADED_OBJECTS=1", "/lib64/ld-linux-x86-64.so.2", file}, folder, "loader", 10s);
  std::vector<std::string> missing;
  std::istringstream text(said.out);
  for (std::string line; std::getline(text, line);) {
    const std::size_t arrow = line.find(" => not found");
    const std::size_t start = line.find_first_not_of(" \t");
    if (arrow != std::string::npos) missing.push_back(line.substr(start, arrow - start));
  }
  return missing;
}

std::optional<Missing> find_missing_modules(const Case& one, const fs::path& folder) {
  if (one.modules.empty()) return std::nullopt;
  std::vector<std::string> command = {
      one.interpreter, "-c",
      "import importlib.util, sys\nfor m in sys.argv[1:]:\n if importlib.util.find_spec(m) is None: print(m)"};
  command.insert(command.end(), one.modules.begin(), one.modules.end());
  const Captured said = capture(command, folder, "modules", 30s);
  if (said.status == 0 && said.out.empty()) return std::nullopt;
  const std::string module = said.out.substr(0, said.out.find('\n'));
  return Missing{fmt::format("{} has no module {}", one.interpreter.string(), module), package_of(module)};
}

}  // namespace

std::optional<Missing> find_missing(const Case& one, const fs::path& folder) {
  if (!one.interpreter.empty()) {
    if (::access(one.interpreter.c_str(), X_OK) != 0) {
      return Missing{fmt::format("there is no {}", one.interpreter.string()),
                     package_of(one.interpreter.filename().string())};
    }
    return find_missing_modules(one, folder);
  }
  std::vector<fs::path> files = {one.program};
  files.insert(files.end(), one.loads.begin(), one.loads.end());
  for (const fs::path& file : files) {
    // if a file of the case itself is missing, the machine lacks nothing: the case becomes red when it is run
    if (::access(file.c_str(), R_OK) != 0) continue;
    const auto libraries = list_missing_libraries(file, folder);
    if (libraries.empty()) continue;
    return Missing{
        fmt::format("{} needs {}, which is not on this machine", file.filename().string(), fmt::join(libraries, ", ")),
        package_of(libraries.front())};
  }
  return std::nullopt;
}

std::string find_trace_refusal() {
  if (::geteuid() == 0) return "";
  const std::string scope = proc::read_file("/proc/sys/kernel/yama/ptrace_scope").text;
  if (scope.empty() || scope.front() == '0') return "";
  return fmt::format("kernel.yama.ptrace_scope is {}: only root may examine a process that another process started",
                     scope.front());
}

}  // namespace forksight::suite
