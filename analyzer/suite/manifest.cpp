#include "suite/manifest.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "proc/proc_fs.hpp"

namespace forksight::suite {
namespace {

namespace fs = std::filesystem;

constexpr char kSchema[] = "forksight-suite-cases/1";

Case read_case(const nlohmann::json& entry, const fs::path& folder) {
  Case one;
  entry.at("name").get_to(one.name);
  entry.at("folder").get_to(one.folder);
  entry.at("variant").get_to(one.variant);
  one.source = folder / entry.at("source").get<std::string>();
  one.program = folder / entry.at("program").get<std::string>();
  one.interpreter = entry.at("interpreter").get<std::string>();
  for (const auto& file : entry.at("loads")) one.loads.push_back(folder / file.get<std::string>());
  entry.at("modules").get_to(one.modules);
  for (const auto& [name, value] : entry.at("environment").items()) {
    one.environment.emplace_back(name, value.get<std::string>());
  }
  entry.at("labels").get_to(one.labels);
  one.on_real_driver = entry.value("driver", "") == "real";
  return one;
}

}  // namespace

std::vector<std::string> Case::command() const {
  if (interpreter.empty()) return {program.string()};
  return {interpreter.string(), "-B", program.string(), variant};
}

Result<Suite> read_suite(const fs::path& folder) {
  const fs::path manifest = folder / "cases.json";
  std::ifstream stream(manifest);
  if (!stream) return Error{fmt::format("{}: cannot be read; --cases names the folder of a suite", manifest.string())};
  Suite suite;
  suite.folder = folder;
  try {
    const nlohmann::json json = nlohmann::json::parse(stream);
    if (json.at("schema") != kSchema) {
      return Error{fmt::format("{}: its schema is {}, this build reads {}; use the forksight that it was built with",
                               manifest.string(), json.at("schema").dump(), kSchema)};
    }
    std::set<std::string> names;
    for (const nlohmann::json& entry : json.at("cases")) {
      suite.cases.push_back(read_case(entry, folder));
      const std::string& name = suite.cases.back().name;
      if (!names.insert(name).second) return Error{fmt::format("{}: {} is there twice", manifest.string(), name)};
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{fmt::format("{}: {}", manifest.string(), error.what())};
  }
  return suite;
}

Result<fs::path> find_suite() {
  const auto self = proc::read_link("/proc/self/exe");
  if (!self) return Error{"cannot find the suite: /proc/self/exe cannot be read"};
  const fs::path bin = fs::path(*self).parent_path();
  for (const char* place : {FORKSIGHT_SUITE_FROM_BIN, "../repro"}) {
    const fs::path folder = (bin / place).lexically_normal();
    std::error_code error;
    if (fs::exists(folder / "cases.json", error)) return folder;
  }
  return Error{
      fmt::format("{}: there is no suite: the packages leave it out, and so does `./bootstrap build`; get forksight's "
                  "sources, build them with `./bootstrap test`, and run `build/release/bin/forksight suite` there; or "
                  "name the folder of another suite with --cases",
                  (bin / FORKSIGHT_SUITE_FROM_BIN).lexically_normal().string())};
}

bool is_control(const Expectations& expected) { return findings_of(expected).empty(); }

const std::vector<ExpectedFinding>& findings_of(const Expectations& expected) {
  const bool is_guessed = expected.findings.empty() && expected.bare == "hang";
  return is_guessed ? expected.why : expected.findings;
}

}  // namespace forksight::suite
