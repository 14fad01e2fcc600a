// Writes findings as JSON, and reads findings from JSON. Only findings_json.cpp contains the names of the members.
// docs/report.schema.json describes the members for users.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "result.hpp"

namespace forksight::render {

// Findings to write, or findings that were read. If they were read, their processes have only the members that
// process_to_json() writes.
struct ToldFindings {
  std::vector<model::Process> processes;
  std::vector<Finding> findings;  // each finding refers to its processes by their index in `processes`
};

nlohmann::ordered_json process_to_json(const model::Process& process);
nlohmann::ordered_json stack_to_json(const model::Stack& stack);
nlohmann::ordered_json finding_to_json(const Finding& finding, const std::vector<model::Process>& processes);

// Returns a document that has only findings and their processes.
std::string tell_findings(std::string_view schema, const ToldFindings& told);

// Returns a part of a document as text.
std::string value_text(const nlohmann::ordered_json& value);

// Returns the document as text. The text is UTF-8, no matter which bytes the names contain, and ends with a newline.
std::string document_text(const nlohmann::ordered_json& document);

// Reads findings from a document of tell_findings(), or from a report. The text is hostile input: sizes, types and
// words are checked. Other members of the document are ignored. No member says whether Finding::may_be_intended is set,
// because diagnose() drops such findings before they are written.
Result<ToldFindings> read_findings(std::string_view schema, std::string_view text);

}  // namespace forksight::render
