#include "suite/expectation_json.hpp"

#include <nlohmann/json.hpp>

namespace forksight::suite {

using Json = nlohmann::ordered_json;

Json to_json(const std::vector<ExpectedFinding>& findings) {
  Json list = Json::array();
  for (const ExpectedFinding& finding : findings) {
    Json fields = Json::object();
    for (const auto& [key, value] : finding.fields) fields[key] = value;
    Json stacks = Json::object();
    for (const auto& [name, frames] : finding.stacks) {
      stacks[name] = Json::array();
      for (const ExpectedFrame& frame : frames) {
        stacks[name].push_back({{"function", frame.function}, {"file", frame.file}, {"line", frame.line}});
      }
    }
    list.push_back({{"rule", finding.rule},
                    {"certainty", finding.certainty},
                    {"outcome", finding.outcome},
                    {"fields", fields},
                    {"stacks", stacks}});
  }
  return list;
}

Json to_json(const Expectations& expected) {
  Json runs = Json::array();
  for (const ExpectedRun& run : expected.runs) {
    runs.push_back({{"options", run.options},
                    {"outcome", run.outcome},
                    {"status", run.status},
                    {"printed", run.printed},
                    {"rule", run.rule},
                    {"says", run.says}});
  }
  Json json = {{"bare", expected.bare},
               {"options", expected.options},
               {"findings", to_json(expected.findings)},
               {"why", to_json(expected.why)},
               {"core", nullptr},
               {"runs", runs},
               {"unknown", expected.unknown}};
  if (expected.core) json["core"] = to_json(*expected.core);
  return json;
}

Json to_json(const Case& one) {
  return {{"name", one.name},     {"folder", one.folder},          {"variant", one.variant},
          {"labels", one.labels}, {"source", one.source.string()}, {"command", one.command()}};
}

std::vector<ExpectedFinding> read_findings(const Json& list) {
  std::vector<ExpectedFinding> findings;
  for (const Json& entry : list) {
    ExpectedFinding finding{entry.at("rule"), entry.at("certainty"), entry.at("outcome"), {}, {}};
    for (const auto& [key, value] : entry.at("fields").items()) finding.fields.emplace_back(key, value);
    for (const auto& [name, frames] : entry.at("stacks").items()) {
      auto& stack = finding.stacks.emplace_back(name, std::vector<ExpectedFrame>()).second;
      for (const Json& frame : frames) {
        stack.push_back({frame.at("function"), frame.at("file"), frame.at("line").get<int>()});
      }
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace forksight::suite
