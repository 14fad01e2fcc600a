// Writes the JSON report, which is for programs. docs/report.schema.json describes this report.
#pragma once

#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "render/json_writer.hpp"

namespace forksight::render {

inline constexpr char kReportSchema[] = "forksight-report/2";

// Writes the report as JSON, piece by piece. Returns false if `sink` has refused a piece.
bool write_json(const model::Model& model, const std::vector<Finding>& findings, const Sink& sink);

// Returns the report as JSON. The text is UTF-8, no matter which bytes the names contain, and ends with a newline.
std::string render_json(const model::Model& model, const std::vector<Finding>& findings);

}  // namespace forksight::render
