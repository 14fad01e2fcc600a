// Writes findings as JSON, and reads findings from JSON. Only findings_json.cpp contains the names of the members.
// docs/report.schema.json describes the members for users.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "render/json_writer.hpp"
#include "result.hpp"

namespace forksight::render {

// Findings to write, or findings that were read. If they were read, their processes have only the members that
// write_process_members() writes.
struct ToldFindings {
  std::vector<model::Process> processes;
  std::vector<Finding> findings;  // each finding refers to its processes by their index in `processes`
};

// Writes the members that a process has wherever it occurs. The caller begins and ends the object.
void write_process_members(JsonWriter& out, const model::Process& process);

// Writes the frames as an array.
void write_stack(JsonWriter& out, const model::Stack& stack);

void write_finding(JsonWriter& out, const Finding& finding, const std::vector<model::Process>& processes);

// Returns a document that has only findings and their processes.
std::string tell_findings(std::string_view schema, const ToldFindings& told);

// Reads findings from a document of tell_findings(), or from a report. The text is hostile input: sizes, types and
// words are checked. Other members of the document are ignored. No member says whether Finding::may_be_intended is set,
// because diagnose() drops such findings before they are written.
Result<ToldFindings> read_findings(std::string_view schema, std::string_view text);

}  // namespace forksight::render
