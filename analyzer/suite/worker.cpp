#include "suite/worker.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <utility>

#include "suite/needs.hpp"
#include "suite/processes.hpp"
#include "suite/real_driver.hpp"

namespace forksight::suite {
namespace {

nlohmann::json write_parts(const std::vector<Part>& parts) {
  nlohmann::json list = nlohmann::json::array();
  for (const Part& part : parts) {
    list.push_back({part.name, static_cast<int>(part.state), part.command, part.lines, part.seconds});
  }
  return list;
}

// Makes a folder that contains only a link to the driver, and puts that folder into LD_LIBRARY_PATH. So no other
// library is loaded from the folder of the driver.
std::optional<Missing> prefer_real_driver(const std::filesystem::path& folder) {
  const RealDriver driver = find_real_driver();
  if (driver.library.empty()) return Missing{driver.reason, ""};
  const std::filesystem::path alone = folder / "driver";
  std::filesystem::create_directories(alone);
  std::filesystem::create_symlink(std::filesystem::canonical(driver.library), alone / "libcuda.so.1");
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  const std::string rest = before != nullptr && *before != '\0' ? std::string(":") + before : "";
  ::setenv("LD_LIBRARY_PATH", (alone.string() + rest).c_str(), 1);
  return std::nullopt;
}

}  // namespace

std::string work(const Entry& entry, const JudgeOptions& options) {
  std::vector<Part> parts;
  std::optional<Missing> missing;
  std::string problem;
  for (const auto& [name, value] : entry.which->environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (become_reaper()) {
    missing = find_missing(*entry.which, options.folder);
    if (!missing && entry.which->on_real_driver) missing = prefer_real_driver(options.folder);
    if (!missing) parts = judge(entry.which->command(), entry.expected, options);
  } else {
    problem = "the kernel refuses PR_SET_CHILD_SUBREAPER";
  }
  const nlohmann::json result = {{"parts", write_parts(parts)},
                                 {"missing", missing ? missing->what : ""},
                                 {"package", missing ? missing->package : ""},
                                 {"problem", problem}};
  return result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool read_result(const std::string& text, CaseResult& result) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !text.ends_with('\n')) return false;
  for (const nlohmann::json& part : json.at("parts")) {
    result.parts.push_back({part.at(0), static_cast<State>(part.at(1).get<int>()), part.at(2), part.at(3), part.at(4)});
  }
  result.state = overall(result.parts);
  result.package = json.at("package");
  if (const std::string missing = json.at("missing"); !missing.empty()) {
    result.lines.push_back(missing);
    result.state = State::kSkipped;
  }
  if (const std::string problem = json.at("problem"); !problem.empty()) {
    result.lines.push_back(problem);
    result.state = State::kRed;
  }
  return true;
}

}  // namespace forksight::suite
