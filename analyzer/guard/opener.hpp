// Opens files for the process that parses them. If root runs forksight, the process that parses (guard/child.hpp) has
// no rights over files. This process has them, and parses nothing. It grants only what a report may need, because
// foreign code may be running in the process that asks.
#pragma once

#include "files/opener.hpp"

namespace forksight::guard {

// Grants or refuses one request. It grants
// - a file of /proc/PID and /proc/PID/task/TID, but nothing behind their links root and cwd;
// - the text of a link there, and the system calls of all threads of a process;
// - what stat(2) says about any file;
// - a regular file, or a folder, that the caller has named (files::name_path()), or that is below such a folder;
// - any other regular file only if it is a program, a library or a debug file (ELF, but no core), or the file of a
//   queue. If the request has an owner, that user must be able to read the file;
// - a socket that asks the kernel about the sockets of a thread's network namespace.
// If the work examines no processes, it grants only the files "maps" and "fd" of a process, and no memory.
// A refused request has the error EACCES.
files::Reply grant(const files::Request& request, bool examines_processes);

// Answers requests from `socket` until the other end is closed. Then ends the process.
[[noreturn]] void serve_requests(int socket, bool examines_processes);

}  // namespace forksight::guard
