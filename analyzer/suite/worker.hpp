// A process that judges one case, and leaves nothing of it behind.
#pragma once

#include <filesystem>
#include <string>

#include "suite/judge.hpp"
#include "suite/select.hpp"

namespace forksight::suite {

// Judges in this process, which it makes a reaper, and gives the result as a text for read_result(). SIGTERM makes it
// stop, with what is known.
std::string work(const Entry& entry, const JudgeOptions& options);

// False if the text is no whole result.
bool read_result(const std::string& text, CaseResult& result);

}  // namespace forksight::suite
