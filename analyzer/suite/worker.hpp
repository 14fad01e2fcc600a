// A process that judges one case and leaves no process behind.
#pragma once

#include <filesystem>
#include <string>

#include "suite/judge.hpp"
#include "suite/select.hpp"

namespace forksight::suite {

// Judges the case in this process, which becomes a subreaper. Returns the result as a text for read_result(). After
// SIGTERM, the function stops early and returns the results so far.
std::string work(const Entry& entry, const JudgeOptions& options);

// False if the text is not a complete result.
bool read_result(const std::string& text, CaseResult& result);

}  // namespace forksight::suite
