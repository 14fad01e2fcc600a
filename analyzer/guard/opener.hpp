// Opens files for the process that parses them. If root runs forksight, the process that parses (guard/child.hpp) has
// no rights over files. The opener has these rights, and parses nothing. The opener grants only what a report may need,
// because foreign code may be running in the process that asks.
#pragma once

#include "files/opener.hpp"

namespace forksight::guard {

// Grants or refuses one request. It grants
// - a file of /proc/PID or /proc/PID/task/TID, but nothing behind the links root and cwd of these folders;
// - the text of a link in these folders, and the system calls of all threads of a process;
// - what stat(2) says about any file;
// - a regular file, or a folder, that the caller has named (files::name_path()), or that is below a named folder. Below
//   a named folder, links to folders are not followed, and a link to a file is followed only if the owner of the link
//   may read the file;
// - any other regular file only if it is a program, a library or a debug file (ELF, but no core), or the file of a
//   queue (by its path and its first bytes). If the request has an owner, that user must be able to read the file;
// - a socket that asks the kernel about the sockets of a thread's network namespace.
// A refused request has the error EACCES. If descriptors or memory are used up, or a device fails, the reply has that
// error, and never a part of a list.
files::Reply grant(const files::Request& request);

// True if foreign code could use the reply to read the memory of a process, its environment or its state.
bool reads_process(const files::Request& request);

// Answers requests from `socket` until the other end is closed. Then ends the process. Unless `examines_processes`,
// refuses the requests for which reads_process() is true.
[[noreturn]] void serve_requests(int socket, bool examines_processes);

}  // namespace forksight::guard
