// Where separate debug information lies: by build-id, by debug link, and the shared part that dwz makes. A file is used
// only if it has the build-id that is asked for, and only within the budgets of files/budgets.hpp. Only files of
// this machine, unless allowed otherwise: unlike libdwfl's own search it asks no debuginfod server by itself, so a
// report cannot wait for a network.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <span>
#include <string>

namespace forksight::symbols {

// A Dwfl_Callbacks::find_debuginfo. The module's user data is its ElfModule.
int find_debug_file(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base, const char* file_name,
                    const char* debuglink_file, GElf_Word debuglink_crc, char** debuginfo_file_name);

// From now on what this machine does not have is asked of the servers that DEBUGINFOD_URLS names, if it names any:
// programs and libraries too, by build-id. libdwfl loads libdebuginfod for it, which keeps what it fetched in
// ~/.cache/debuginfod_client and gives up after DEBUGINFOD_TIMEOUT seconds without progress, 20 if the environment does
// not say. For whoever asks about a process or a core, and waits. Changes the environment: before there are threads.
// For root only if it is asked for: a server learns which programs run, and what it sends is parsed with root's rights.
// False: it was not allowed.
bool allow_debuginfod(bool is_asked_for);

// A server that answered nothing for seconds is not asked for the next file. The sentence about this for the report;
// "": there is none.
std::string debuginfod_limit();

// The program or library with this build-id, from such a server: a descriptor, or -1.
int fetch_elf_file(std::span<const std::uint8_t> build_id);

// True if the file has this build-id, which must not be empty.
bool has_build_id(int fd, std::span<const std::uint8_t> build_id);

}  // namespace forksight::symbols
