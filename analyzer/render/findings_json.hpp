// Findings as JSON, and JSON as findings: the one place that knows their members. docs/report.schema.json has these for
// others.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "result.hpp"

namespace forksight::render {

// Of processes no more is kept than what tells them apart: see process_to_json().
struct ToldFindings {
  std::vector<model::Process> processes;
  std::vector<Finding> findings;  // of these processes
};

nlohmann::ordered_json process_to_json(const model::Process& process);
nlohmann::ordered_json stack_to_json(const model::Stack& stack);
nlohmann::ordered_json finding_to_json(const Finding& finding, const std::vector<model::Process>& processes);

// A document of nothing but findings and their processes.
std::string tell_findings(std::string_view schema, const ToldFindings& told);

// UTF-8 whatever bytes the names had; ends with a newline.
std::string document_text(const nlohmann::ordered_json& document);

// Of a report, too. The text is hostile input: sizes, types and words are checked. What else the document has is passed
// over. Finding::may_be_meant is not told: who tells a finding has decided about that.
Result<ToldFindings> read_findings(std::string_view schema, std::string_view text);

}  // namespace forksight::render
