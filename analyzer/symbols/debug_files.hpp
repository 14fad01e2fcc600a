// Where separate debug information lies: by build-id, by debug link, and the shared part that dwz makes. Only files of
// this machine: unlike libdwfl's own search it never asks a debuginfod server, so a report cannot wait for a network.
#pragma once

#include <elfutils/libdwfl.h>

namespace forksight::symbols {

// A Dwfl_Callbacks::find_debuginfo.
int find_debug_file(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base, const char* file_name,
                    const char* debuglink_file, GElf_Word debuglink_crc, char** debuginfo_file_name);

// Opens a regular file for reading, without waiting for a FIFO's writer. -1 with errno.
int open_regular_file(const char* path);

}  // namespace forksight::symbols
