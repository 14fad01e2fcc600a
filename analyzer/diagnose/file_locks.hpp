// What the findings about file locks have in common.
#pragma once

#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::file_locks {

// Returns the path of the file, such as "/var/lib/app/queue"; "file descriptor 7" if the path is not known.
std::string name_file(const model::FileLockUse& use);
// Returns the locked range: "bytes 0 to 99", "all bytes", "all bytes from 100".
std::string name_range(const model::FileLockUse& use);

// Begins a finding with the outcome kCorruption. The finding is about the process that used the lock.
Finding begin_finding(const Evidence& evidence, const char* slug, const model::FileLockUse& use);

}  // namespace forksight::file_locks
