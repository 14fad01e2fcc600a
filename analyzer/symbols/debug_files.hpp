// Finds separate debug information: by build-id, by debug link, and the shared part that dwz makes. A file is used only
// if it has the wanted build-id, and only within the budgets of files/budgets.hpp. Only files on this machine are used,
// unless allow_debuginfod() was called. libdwfl's own search would ask debuginfod servers; this one does not, so a
// report does not wait for a network.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <span>
#include <string>

namespace forksight::symbols {

// A Dwfl_Callbacks::find_debuginfo. The module's user data is its ElfModule.
int find_debug_file(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base, const char* file_name,
                    const char* debuglink_file, GElf_Word debuglink_crc, char** debuginfo_file_name);

// Allows forksight to ask the servers of DEBUGINFOD_URLS for files that this machine does not have: debug files,
// programs and libraries, by build-id. libdwfl loads libdebuginfod for this. libdebuginfod keeps the files in
// ~/.cache/debuginfod_client. It gives up after DEBUGINFOD_TIMEOUT seconds without progress; if the environment does
// not set this, the limit is 20 seconds. Commands call this function if a user asks about a process or a core, and
// waits for the answer. It changes the environment, so it must run before there are threads. Root must ask for it
// (`is_asked_for`): a server learns which programs run, and forksight parses with root's rights what the server sends.
// Returns false if it was not allowed.
bool allow_debuginfod(bool is_asked_for);

// True if debuginfod servers may be asked, and DEBUGINFOD_URLS names one.
bool may_ask_servers();

// If the servers do not answer for seconds, they are not asked again. Returns a sentence for the report that says so;
// "" if this has not happened.
std::string debuginfod_limit();

// Fetches the program or library with this build-id from the servers of DEBUGINFOD_URLS. Returns a descriptor, or -1.
int fetch_elf_file(std::span<const std::uint8_t> build_id);

// True if the file has this build-id, which must not be empty.
bool has_build_id(int fd, std::span<const std::uint8_t> build_id);

}  // namespace forksight::symbols
