// Expectations as JSON. They are a part of the output of `forksight suite list|run --format json`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "suite/results.hpp"

namespace forksight::suite {

nlohmann::ordered_json to_json(const std::vector<ExpectedFinding>& findings);
nlohmann::ordered_json to_json(const Expectations& expected);
nlohmann::ordered_json to_json(const Case& one);

// Reads findings back; throws nlohmann::json::exception for anything that to_json() did not write.
std::vector<ExpectedFinding> read_findings(const nlohmann::ordered_json& list);

}  // namespace forksight::suite
