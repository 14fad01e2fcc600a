// Finds separate debug information by build-id and by debug link. Also finds dwz's shared file, in which the program
// dwz stores what several debug files have in common. A file is used only if it has the wanted build-id. It must also
// stay within the limits that files/budgets.hpp sets for sizes, memory and processor time. Only files on this machine
// are used, unless allow_debuginfod() was called. The search that libdwfl contains would always ask debuginfod servers,
// and a report would wait for the network. So this file replaces that search.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <span>
#include <string>

namespace forksight::symbols {

// A function for Dwfl_Callbacks::find_debuginfo. `*userdata` must point to the ElfModule of `module`.
int find_debug_file(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base, const char* file_name,
                    const char* debuglink_file, GElf_Word debuglink_crc, char** debuginfo_file_name);

// Allows forksight to ask the servers of DEBUGINFOD_URLS for files that this machine does not have: debug files,
// programs and libraries, by build-id. libdwfl loads libdebuginfod for this. libdebuginfod keeps the files in
// ~/.cache/debuginfod_client. libdebuginfod gives up after DEBUGINFOD_TIMEOUT seconds without progress, or after 20
// seconds if the environment does not set that variable. This function is for commands whose user has asked about a
// process or a core and waits for the answer. The function changes the environment, so it must run before there are
// threads. `is_asked_for`: the user gave the option --debuginfod. If root runs forksight without this option, the
// function has no effect, for two reasons. A server learns which programs run. And forksight parses what the server
// sends, with the rights of root. Returns false if the function had no effect.
bool allow_debuginfod(bool is_asked_for);

// True if debuginfod servers may be asked, and DEBUGINFOD_URLS names one.
bool may_ask_servers();

// If a server took too long to answer, forksight does not ask the servers again, and this function returns a sentence
// about this for the report. Otherwise returns "".
std::string debuginfod_limit();

// Fetches the program or library with this build-id from the servers of DEBUGINFOD_URLS. Returns a descriptor, or -1.
int fetch_elf_file(std::span<const std::uint8_t> build_id);

// True if the file has this build-id, which must not be empty.
bool has_build_id(int fd, std::span<const std::uint8_t> build_id);

}  // namespace forksight::symbols
